// Asking the town: each answers with words for people when it cannot be done.

const LOST = "The town cannot be reached. Try again in a moment.";

// Sends JSON; "" when it is done, else why not.
export async function send(path, body, lost = LOST) {
  try {
    const answer = await fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    return answer.ok ? "" : (await answer.json()).error;
  } catch {
    return lost;
  }
}

// Why a resident wrote a post: `{title, steps, ending}`, or `{error}`.
export async function why(handle, uri) {
  try {
    return await (await fetch(`/api/why?${new URLSearchParams({ handle, uri })}`)).json();
  } catch {
    return { error: LOST };
  }
}
