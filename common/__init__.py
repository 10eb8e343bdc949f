"""Pure and stateless base layer: values and rules that all other packages may use."""
