// The page's own tools. It writes texts only, never markup, since keys and bodies come from anywhere.

export const at = (id) => document.getElementById(id);
const shown = new Map();
const openers = new Map();
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem("token", given);  // A link to a panel replaces the fragment.
  history.replaceState(null, "", location.pathname);
}

export function element(name, content, attributes = {}) {
  const made = document.createElement(name);
  for (const one of [content].flat(Infinity)) if (one !== null && one !== undefined) made.append(one);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value !== undefined) made.setAttribute(key, value);
  }
  return made;
}

export const button = (text, id, label, click, look = "") =>
  element("button", text, { id, type: "button", class: look, "aria-label": label ? `${text}: ${label}` : undefined, click });
export const json = (value) => element("pre", JSON.stringify(value, null, 1), { tabindex: "0" });
export const brief = (value) => element("code", JSON.stringify(value).slice(0, 300));
// The key of a message as people read it: a source is encoded in it, and most ids are long.
export function named(message) {
  const [source, ...rest] = message.split("/");
  const id = rest.join("/");
  return `${decodeURIComponent(source)}/${/^[0-9a-f]{8}(-|[0-9a-f]{24}$)/.test(id) ? `${id.slice(0, 8)}…` : id}`;
}
export const time = (text) => {
  if (!text) return "-";
  const moment = new Date(text);
  const day = moment.toDateString() === new Date().toDateString() ? "" : `${moment.toLocaleDateString()} `;
  return element("time", day + moment.toLocaleTimeString(), { datetime: text });
};

// The name of something. It is broken after slashes if it is not short, and elsewhere only if it is long.
const SHORT = 14;
const LONG = 24;
export const name = (text) => (text.length <= SHORT ? [text] : text.split(/(?<=\/)/)).map((part) =>
  [element("span", part, { class: part.length <= LONG ? "whole" : "long" }), element("wbr")]);

export function table(caption, heads, rows) {
  if (rows.length === 0) return element("p", `${caption}: none.`, { class: "quiet" });
  const head = element("thead", element("tr", heads.map((one) => element("th", one, { scope: "col" }))));
  const line = (cells) =>
    element("tr", cells.map((cell, place) =>
      element(place ? "td" : "th", element("span", cell), { "data-name": heads[place], scope: place ? undefined : "row" })));
  return element("table", [element("caption", caption), head, element("tbody", rows.map(line))]);
}

// Draws a part of the page only where its data changed, and leaves the focus where it was.
export function draw(id, data, make) {
  const key = JSON.stringify(data);
  if (shown.get(id) === key) return;
  shown.set(id, key);
  const focus = document.activeElement?.id;
  at(id).replaceChildren(...[make(data)].flat());
  if (focus && document.activeElement?.id !== focus) at(focus)?.focus();
}

// Options of a choice; what was chosen stays chosen.
export function choose(id, options) {
  const chosen = at(id).options.length ? at(id).value : null;
  draw(id, options, (all) => all.map(([value, text]) => element("option", text, { value })));
  if (options.some(([value]) => value === chosen)) at(id).value = chosen;
}

export function open(id, content, close) {
  const panel = at(id);
  const done = button("Close", `${id}-close`, "", () => {
    panel.hidden = true;
    close?.();
    at(openers.get(id))?.focus();
  });
  panel.replaceChildren(element("p", done, { class: "close" }), ...content.filter(Boolean));
  reveal(id);
}

// Shows a panel that may be closed. Closing it gives the focus back to the button that has opened it.
export function reveal(id) {
  if (at(id).hidden) openers.set(id, document.activeElement?.id);
  at(id).hidden = false;
}

export function say(text, id = "status") {
  if (at(id).textContent !== text) at(id).textContent = text;
}

export async function ask(path, body) {
  const headers = { "X-Exactlyonce-Console": sessionStorage.getItem("token") ?? "" };
  const how = body === undefined ? { headers } :
    { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let reply;
  try {
    reply = await fetch(`api/${path}`, how);
  } catch {
    throw new Error("The command that serves this page has ended.");
  }
  const found = await reply.json();
  if (!reply.ok) throw Object.assign(new Error(found.error), { isEarly: reply.status === 425 });
  return found;
}

// Does what somebody asked for, and says what came of it in the live region.
export async function act(what, after) {
  try {
    say(await after(await what()));
  } catch (error) {
    say(error.message);
  }
  document.dispatchEvent(new Event("changed"));
}
