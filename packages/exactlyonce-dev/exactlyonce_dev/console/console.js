// The page of the console. It writes texts only, never markup, since keys and bodies come from anywhere.

const at = (id) => document.getElementById(id);
const shown = new Map();
let version = "";
let messages = [];

function element(name, content, attributes = {}) {
  const made = document.createElement(name);
  for (const one of [content].flat()) if (one !== null && one !== undefined) made.append(one);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value !== undefined) made.setAttribute(key, value);
  }
  return made;
}

const button = (text, id, label, click, look = "") =>
  element("button", text, { id, type: "button", class: look, "aria-label": `${text}: ${label}`, click });
const json = (value) => element("pre", JSON.stringify(value, null, 1));
const brief = (value) => element("code", JSON.stringify(value).slice(0, 300));

function table(caption, heads, rows) {
  if (rows.length === 0) return element("p", `${caption}: none.`, { class: "quiet" });
  const head = element("thead", element("tr", heads.map((one) => element("th", one, { scope: "col" }))));
  const line = (cells) =>
    element("tr", cells.map((cell, place) =>
      element(place ? "td" : "th", element("span", cell), { "data-name": heads[place], scope: place ? undefined : "row" })));
  return element("table", [element("caption", caption), head, element("tbody", rows.map(line))]);
}

// Draws a part of the page only where its data changed, and leaves the focus where it was.
function draw(id, data, make) {
  const key = JSON.stringify(data);
  if (shown.get(id) === key) return;
  shown.set(id, key);
  const focus = document.activeElement?.id;
  at(id).replaceChildren(...[make(data)].flat());
  if (focus && document.activeElement?.id !== focus) at(focus)?.focus();
}

function open(id, content) {
  const panel = at(id);
  const close = button("Close", `${id}-close`, id, () => { panel.hidden = true; });
  panel.replaceChildren(...content, element("p", close));
  panel.hidden = false;
  panel.focus();
}

function say(text, id = "status") {
  if (at(id).textContent !== text) at(id).textContent = text;
}

async function ask(path, body) {
  const given = body === undefined ? {} :
    { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let reply;
  try {
    reply = await fetch(`api/${path}`, given);
  } catch {
    throw new Error("exactlyonce dev has ended.");
  }
  const found = await reply.json();
  if (!reply.ok) throw new Error(found.error);
  return found;
}

// Runs what somebody asked for, and says what came of it in the live region.
async function act(what, after) {
  try {
    say(after(await what()));
  } catch (error) {
    say(error.message);
  }
  await refresh();
}

// Messages

function outcome(text) {
  const look = text === "processed" || text === "duplicate dropped" ? "good-text" :
    ["failed", "parked", "lost with the process"].includes(text) ? "bad-text" : "";
  return element("span", text, { class: look });
}

const sendAgain = (one) =>
  act(() => ask("again", { type: one.entity.type, envelope: one.envelope }), (found) => `Sent again to ${found.destination}.`);

function messageRow(one) {
  const tried = one.steps.length ? ` (${one.steps.length} steps)` : "";
  const actions = [button("Show", `show-${one.id}`, one.message, () => openMessage(one.id))];
  if (one.envelope && one.destination) actions.push(button("Send again", `again-${one.id}`, one.message, () => sendAgain(one)));
  return [
    one.message, one.type ?? "-", one.entity.name, [outcome(one.outcome), tried],
    one.outputs.map((output) => `→ ${output.destination}`).join(", ") || "-", actions,
  ];
}

function openMessage(id) {
  const one = messages.find((each) => each.id === id);
  open("message", [
    element("h3", `Message ${one.message}`),
    element("p", ["Outcome: ", outcome(one.outcome), one.seconds === undefined ? null : ` after ${Math.round(one.seconds * 1000)} ms`]),
    one.steps.length ? element("ol", one.steps.map((step) => element("li", step))) : null,
    table("Outputs, and where they went", ["Destination", "Message"], one.outputs.map((output) => [output.destination, output.id])),
    element("h3", "Envelope"),
    one.envelope ? json(one.envelope) : element("p", "It is not kept: it is too large, or the message was parked."),
  ].filter(Boolean));
}

async function refreshMessages() {
  const found = await ask(`messages?version=${version}`);
  version = found.version;
  if (found.messages) messages = found.messages;
  draw("messages-list", messages, (all) =>
    table("Deliveries", ["Message", "Type", "Entity", "Outcome", "Outputs", "Actions"], all.map(messageRow)));
}

// Entities

async function refreshTypes() {
  const found = await ask("types");
  const options = (all) => all.map(([value, text]) => element("option", text, { value }));
  draw("type", found.types, (types) => options(types.map((one) => [one.name, `${one.name} (${one.strategy})`])));
  draw("destination", found.destinations, (all) => options([["", "where they came from"], ...all.map((one) => [one, one])]));
  const containers = [...new Set(found.types.map((one) => one.container))];
  draw("container", containers, (all) => options([...all.map((one) => [one, one]), ["", "any"]]));
}

async function refreshEntities() {
  const type = at("type").value;
  if (!type) return;
  const found = await ask(`entities?type=${encodeURIComponent(type)}`);
  draw("entities-list", { type, ...found }, ({ entities, more }) => [
    table(`Entities of type ${type}`, ["Entity", "State", "Actions"], entities.map((one) =>
      [one.name, brief(one.state), button("Show", `entity-${one.key}`, one.name, () => openEntity(type, one.key))])),
    element("p", more ? "There are more: look at one by its key." : "", { class: "quiet" }),
  ]);
}

const openEntity = (type, key) =>
  act(() => ask(`entity?type=${encodeURIComponent(type)}&key=${encodeURIComponent(key)}`), (found) => {
    open("entity", [element("h3", `Entity ${found.name}`), ...knownOf(found)]);
    return `Entity ${found.name}.`;
  });

function knownOf({ state, ledger, belongings }) {
  const parts = [state === null ? element("p", "It is absent, or deleted.") : json(state)];
  if (ledger === null) parts.push(element("p", "No message has been processed on this document, or its ledger was removed."));
  else {
    parts.push(element("p", `Version ${ledger.version}, by the protocol ${ledger.protocol}${ledger.deleted ? "; deleted" : ""}. ` +
      (ledger.owing_since ? `It has owed outputs since ${ledger.owing_since}.` : "It owes no outputs.")));
    parts.push(table("Latest messages in its ledger", ["Version", "Message", "At", "Outputs", "Owes"], ledger.entries.map((one) =>
      [String(one.version), one.message, one.at, one.outputs.join(", ") || "-", one.owes ? "yes" : "no"])));
    if (ledger.receptions.length) parts.push(table("Channels received", ["Channel", "Source", "Next", "Held"], ledger.receptions.map((one) =>
      [one.channel, one.source, String(one.next), one.held.map((span) => span.join("-")).join(", ") || "-"])));
  }
  parts.push(table("Documents of the library about it, its history among them", ["Kind", "Version", "Message", "At"], belongings.map((one) =>
    [one.kind, String(one.version ?? "-"), one.message ?? "-", one.at ?? "-"])));
  return parts;
}

// Parked

const told = ({ counts, problems }) =>
  [...Object.entries(counts).map(([text, count]) => `${count} ${text}`), ...problems].join("; ") + ".";

function actions(id, what, label) {
  const destination = () => at("destination").value;
  return [
    button("Requeue", `requeue-${id}`, label, () => act(() => ask("requeue", { ...what, destination: destination() }), told)),
    button("Discard", `discard-${id}`, label, () => {
      if (confirm(`Delete ${label} for good?`)) act(() => ask("discard", what), told);
    }, "bad"),
  ];
}

async function refreshParked() {
  draw("parked-list", await ask("parked"), (found) => [
    table("By reason", ["Type", "Count", "Reason", "Actions"], found.groups.map((one) =>
      [one.type, String(one.count), one.reason,
        actions(`${one.type}-${one.reason}`, { type: one.type, reason: one.reason }, `all ${one.count} of ${one.type}`)])),
    table("Parked messages", ["Message", "Entity", "At", "Reason", "Actions"], found.messages.map((one) =>
      [one.message, one.entity, one.at, one.reason,
        actions(`${one.entity}-${one.message}`, { entity: one.entity, message: one.message }, `message ${one.message}`)])),
  ]);
}

// Trouble

const hits = (one) => one.hit === null ? "until you end it" : `${one.hit} of ${one.of}`;

async function refreshTrouble() {
  draw("trouble-list", await ask("trouble"), ({ armed }) =>
    table("Trouble at present", ["Trouble", "Container", "Happened"], armed.map((one) => [one.text, one.container ?? "any", hits(one)])));
}

for (const one of document.querySelectorAll("[data-trouble]")) {
  one.addEventListener("click", () => act(
    () => ask("trouble", { kind: one.dataset.trouble, container: at("container").value }), () => `Armed: ${one.textContent}.`));
}
at("calm").addEventListener("click", () => act(() => ask("calm", {}), () => "All trouble has ended."));
at("kill").addEventListener("click", () => act(() => ask("kill", {}), () =>
  "Killed. The app starts again; messages that were under way come back after 30 seconds."));
at("type").addEventListener("change", () => refresh());
at("find").addEventListener("submit", (event) => {
  event.preventDefault();
  openEntity(at("type").value, at("key").value);
});

// Refreshing

async function refresh() {
  let problem = "";
  for (const one of [refreshMessages, refreshTypes, refreshEntities, refreshParked, refreshTrouble]) {
    try {
      await one();
    } catch (error) {
      problem = error.message;
    }
  }
  say(problem || "The app runs.", "app");
}

async function follow() {
  if (!document.hidden) await refresh();
  setTimeout(follow, 1000);
}

follow();
