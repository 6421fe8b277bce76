// How does the page ask the service? With the key, where one is needed.

const KEY = "birchbark-key";

export class Refused extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

async function answered(path, options, again = false) {
  const key = sessionStorage.getItem(KEY);  // a key that no header holds is known to be wrong
  if (key && !/^[\x21-\x7e]+$/.test(key)) {
    sessionStorage.setItem(KEY, await keyAsked(true));
    return answered(path, options, true);
  }
  const headers = { ...options.headers, ...(key ? { authorization: `Bearer ${key}` } : {}) };
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new Refused(0, "The service does not answer. Is it still running?");
  }
  if (answer.status === 401) {
    sessionStorage.setItem(KEY, await keyAsked(again));
    return answered(path, options, true);
  }
  if (!answer.ok) throw new Refused(answer.status, await messageOf(answer));
  return answer;
}

async function messageOf(answer) {
  try {
    return (await answer.json()).message;
  } catch {
    return `The service answered ${answer.status}.`;
  }
}

let asking = null;  // several requests may need the key at once: people are asked for it once
function keyAsked(again) {
  asking ??= new Promise((resolve, reject) => {
    const door = document.getElementById("door"), field = document.getElementById("key");
    field.value = door.returnValue = "";
    document.getElementById("wrong").hidden = !again;
    door.addEventListener("close", () => {
      asking = null;
      if (door.returnValue) resolve(field.value);
      else reject(new Refused(401, "Without its key this service tells nothing."));
    }, { once: true });
    door.showModal();
  });
  return asking;
}

const posted = (body, signal) => ({
  method: "POST", signal, headers: { "content-type": "application/json" }, body: JSON.stringify(body),
});

export const got = async (path, signal) => (await answered(path, { signal })).json();
export const asked = async (path, body, signal) => (await answered(path, posted(body, signal))).json();

// Answers of a search, better and better; the last is the best.
export async function* streamed(request, signal) {
  const answer = await answered("/search/stream", posted(request, signal));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Refused(0, "The service stopped in the middle of its answer.");
    rest += value.replaceAll("\r\n", "\n");
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const lines = event.split("\n");
      const kind = lines.find(line => line.startsWith("event:"))?.slice(6).trim();
      const data = lines.filter(line => line.startsWith("data:")).map(line => line.slice(5)).join("\n");
      if (kind === "answer") yield JSON.parse(data);
      if (kind === "error") throw new Refused(0, JSON.parse(data).message);
      if (kind === "done") return;
    }
  }
}
