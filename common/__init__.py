"""Pure and stateless ground floor: values and rules that every other floor may use."""
