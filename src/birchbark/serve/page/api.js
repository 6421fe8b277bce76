// How does the page send requests to the service? With the key, if one is required.

import { element } from "./dom.js";

const KEY = "birchbark-key";

export class ServiceError extends Error {
  constructor(status, message) { super(message); this.status = status; }
}

async function send(path, options, wrongKey = false) {
  const key = sessionStorage.getItem(KEY);
  if (key && !/^[\x21-\x7e]+$/.test(key)) {  // not allowed in a header, so it must be wrong
    sessionStorage.setItem(KEY, await askForKey(true));
    return send(path, options, true);
  }
  const headers = { ...options.headers, ...(key ? { authorization: `Bearer ${key}` } : {}) };
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError(0, "The service does not respond. Is it running?");
  }
  if (response.status === 401) {
    sessionStorage.setItem(KEY, await askForKey(wrongKey));
    return send(path, options, true);
  }
  if (!response.ok) throw new ServiceError(response.status, await errorMessage(response));
  return response;
}

async function errorMessage(response) {
  try {
    return (await response.json()).message;
  } catch {
    return `The service responded with status ${response.status}.`;
  }
}

function keyDialog() {
  const dialog = element("dialog", { id: "key-dialog", "aria-labelledby": "key-title" }, element("form", { method: "dialog" },
    element("h2", { id: "key-title" }, "This service requires a key"),
    element("p", { id: "wrong-key", role: "alert", hidden: "" }, "Wrong key."),
    element("label", { for: "key" }, "Key"),
    element("input", { id: "key", type: "password", autocomplete: "off" }),
    element("p", { class: "note" }, "The key is stored until this tab is closed."),
    element("button", { value: "given" }, "Continue")));
  document.body.append(dialog);
  return dialog;
}

let pendingKey = null;  // concurrent requests share one dialog
function askForKey(wrongKey) {
  pendingKey ??= new Promise((resolve, reject) => {
    const dialog = document.getElementById("key-dialog") ?? keyDialog(), field = document.getElementById("key");
    field.value = dialog.returnValue = "";
    document.getElementById("wrong-key").hidden = !wrongKey;
    dialog.addEventListener("close", () => {
      pendingKey = null;
      if (dialog.returnValue) resolve(field.value);
      else reject(new ServiceError(401, "This service requires a key."));
    }, { once: true });
    dialog.showModal();
  });
  return pendingKey;
}

const jsonRequest = (body, signal) => ({
  method: "POST", signal, headers: { "content-type": "application/json" }, body: JSON.stringify(body),
});

export const getJson = async (path, signal) => (await send(path, { signal })).json();
export const postJson = async (path, body, signal) => (await send(path, jsonRequest(body, signal))).json();
// Also if the page is closed meanwhile.
export const storeJson = async (path, body) => (await send(path, { ...jsonRequest(body), keepalive: true })).json();

// Saves the results of a search as a file of a type that the service knows.
export async function saveResults(request, type) {
  const { headers, ...rest } = jsonRequest(request), response = await send("/search", { ...rest, headers: { ...headers, accept: type } });
  const address = URL.createObjectURL(await response.blob());
  element("a", { href: address, download: `results.${{ "text/csv": "csv", "text/markdown": "md" }[type] ?? "json"}` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

function endOfBroken(error) {
  if (error.name === "AbortError") throw error;
  return { done: true };
}

// Yields the answers of a search as they become better; the last one is final.
export async function* searchStream(request, signal) {
  const response = await send("/search/stream", jsonRequest(request, signal));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read().catch(endOfBroken);
    if (done) throw new ServiceError(0, "The connection ended before the answer was complete.");
    rest += value.replaceAll("\r\n", "\n");
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const lines = event.split("\n");
      const kind = lines.find(line => line.startsWith("event:"))?.slice(6).trim();
      const data = lines.filter(line => line.startsWith("data:")).map(line => line.slice(5)).join("\n");
      if (kind === "answer") yield JSON.parse(data);
      if (kind === "error") {
        const { status, message } = JSON.parse(data);
        throw new ServiceError(status, message);
      }
      if (kind === "done") return;
    }
  }
}
