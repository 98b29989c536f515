// The panels of entities, unfinished work, parked messages and trouble.

import { act, ask, at, brief, button, choose, draw, element, json, name, named, open, say, table, time } from "./dom.js";

let acts = true;
export function allow(may) {
  acts = may;
}

const KINDS = { f: "foreign", i: "inner", r: "reply", l: "release", q: "request" };
const since = (moment) => time(moment === undefined ? "" : new Date(moment).toISOString());

// Entities

export async function refreshTypes() {
  const found = await ask("types");
  choose("type", found.types.map((one) => [one.name, `${one.name} (${one.strategy})`]));
  choose("destination", [["", "where they came from"], ...found.destinations.map((one) => [one, one])]);
  const containers = [...new Set(found.types.map((one) => one.container))];
  choose("container", [...containers.map((one) => [one, one]), ["", "any"]]);
}

export async function refreshEntities() {
  const type = at("type").value;
  if (!type) return;
  const found = await ask(`entities?type=${encodeURIComponent(type)}`);
  draw("entities-list", { type, ...found }, ({ entities, more }) => [
    table(`Entities of type ${type}`, ["Entity", "State"], entities.map((one) =>
      [button(one.name, `entity-${one.key}`, "", () => openEntity(type, one.key), "link"), brief(one.state)])),
    element("p", more ? "There are more: look at one by its key." : "", { class: "quiet" }),
  ]);
}

export const openEntity = (type, key) =>
  act(() => ask(`entity?type=${encodeURIComponent(type)}&key=${encodeURIComponent(key)}`), (found) => {
    open("entity", [element("h3", found.name), ...knownOf(found)]);
    at("entity").focus();
    return `Entity ${found.name}.`;
  });

function knownOf({ state, ledger, belongings }) {
  const parts = [state === null ? element("p", "It is absent, or deleted.") : json(state)];
  if (ledger === null) parts.push(element("p", "Its document has no ledger: no message has been processed on it."));
  else {
    parts.push(element("p", `Version ${ledger.version}, by the protocol ${ledger.protocol}${ledger.deleted ? "; deleted" : ""}. ` +
      (ledger.owes.length ? `It owes the outputs of ${ledger.owes.length} message${ledger.owes.length === 1 ? "" : "s"}.` : "It owes no outputs.")));
    parts.push(table("Its latest messages, which the ledger remembers", ["Since", "Kind", "Hash", "Sent"], ledger.marks.map((one) =>
      [time(one.since), KINDS[one.kind] + (one.timed ? "" : ", untimed"), element("code", one.hash), one.sent.map((to) => to ?? "(kept)").join(", ") || "-"])));
    if (ledger.left) parts.push(element("p", `It was sent ${ledger.left} more before, which are in pages, or forgotten.`));
    if (ledger.outbox.length) parts.push(table("Outbox: outputs until they are known to be published", ["Message", "At", "To", "Transaction", "Owed"], ledger.outbox.map((one) =>
      [element("code", one.hash), time(one.at), one.to.join(", ") || "-", element("code", one.tx), one.owes ? "yes" : "no"])));
    if (ledger.answers.length) parts.push(table("Answers to requests", ["Message", "Status"], ledger.answers.map((one) => [element("code", one.hash), String(one.status)])));
    if (ledger.sequences.length) parts.push(table("Numbers given out", ["Destination", "Receiver", "Last"], ledger.sequences.map((one) =>
      [one.destination, one.receiver, String(one.last)])));
    if (ledger.keeps.length) parts.push(table("Messages kept until they are due", ["Message", "Due"], ledger.keeps.map((one) => [one.message, time(one.due)])));
    if (ledger.awaits.length) parts.push(table("Calls whose replies are awaited", ["Call"], ledger.awaits.map((one) => [one])));
    if (ledger.receptions.length) parts.push(table("Channels received in order", ["Source", "Next", "Held"], ledger.receptions.map((one) =>
      [one.source, String(one.next), spans(one.held)])));
  }
  const pages = belongings.filter((one) => one.kind === "page");
  if (pages.length) parts.push(table("Pages: messages that the ledger no longer remembers", ["Page", "Version", "First", "Last"], pages.map((one) =>
    [element("code", one.id), String(one.version), since(one.begin), since(one.until)])));
  parts.push(table("History: other documents of the library about it", ["Kind", "Version", "Message", "At"], belongings.filter((one) => one.kind !== "page").map((one) =>
    [one.kind, String(one.version ?? "-"), one.message ? named(one.message) : "-", one.at ? time(one.at) : "-"])));
  return parts;
}

const spans = (all) => all.map(([first, last]) => first === last ? `${first}` : `${first} to ${last}`).join(", ") || "-";

// Unfinished

export async function refreshUnfinished() {
  const { unfinished, books } = await ask("unfinished");
  const open = unfinished.filter((one) => one.owes.length || one.awaits.length || one.holds.length);
  const kept = unfinished.flatMap((one) => one.keeps.map((each) => ({ ...one, ...each })));
  count("unfinished-count", open.length);
  count("kept-count", kept.length);
  const all = (lines) => lines.length ? lines.map((one) => element("div", one)) : "-";
  const link = (one, id) => button(one.name, id, "", () => openEntity(one.type, one.key), "link");
  draw("unfinished-list", open, (found) => table("Unfinished entities", ["Entity", "Owed", "Awaited", "Held"], found.map((one) => [
    link(one, `unfinished-${one.key}`),
    all(one.owes.map((each) => `${each.hash} → ${each.to.join(", ")}`)),
    all(one.awaits),
    all(one.holds.map((each) => `${spans(each.held)} from ${each.source}, until ${each.next} comes`)),
  ])));
  draw("books-list", books, (found) => table("Books of processes", ["Book", "Numbers", "Open", "Stuck", "Written"], found.map((one) =>
    [element("code", one.id), String(one.used), one.open.join(", ") || "-", one.stuck.join(", ") || "-", time(one.written)])));
  draw("kept-list", kept, (found) => table("Messages kept until they are due", ["Entity", "Message", "Due"], found.map((one) => [
    link(one, `kept-${one.key}-${one.message}`), named(one.message), time(one.due),
  ])));
}

function count(id, number) {
  say(number ? String(number) : "", id);
}

// Parked

const told = ({ counts, problems }) =>
  [...Object.entries(counts).map(([text, number]) => `${number} ${text}`), ...problems].join("; ") + ".";

function actions(id, what, label) {
  if (!acts) return "-";
  const destination = () => at("destination").value;
  return [
    button("Requeue", `requeue-${id}`, label, () => act(() => ask("requeue", { ...what, destination: destination() }), told)),
    " ",
    button("Discard", `discard-${id}`, label, () => {
      if (confirm(`Delete ${label} for good?`)) act(() => ask("discard", what), told);
    }, "bad"),
  ];
}

export async function refreshParked() {
  const found = await ask("parked");
  count("parked-count", found.messages.length);
  draw("parked-list", found, ({ groups, messages }) => [
    table("By reason", ["Type", "Count", "Reason", "Actions"], groups.map((one) =>
      [one.type, String(one.count), one.reason,
        actions(`${one.type}-${one.reason}`, { type: one.type, reason: one.reason }, `all ${one.count} of ${one.type}`)])),
    table("Parked messages", ["Message", "Entity", "At", "Reason", "Actions"], messages.map((one) =>
      [name(one.message), name(one.name), time(one.at), one.reason,
        actions(`${one.entity}-${one.message}`, { entity: one.entity, message: one.message }, `message ${one.message}`)])),
  ]);
}

// Trouble

const hits = (one) => one.hit === null ? "until you end it" : `${one.hit} of ${one.of}`;

export async function refreshTrouble() {
  const { armed } = await ask("trouble");
  const left = armed.filter((one) => one.hit === null || one.hit < one.of).length;
  count("trouble-count", left);
  if (armed.length && !left && at("status").textContent.startsWith("Armed: ")) say("It happened.");
  draw("trouble-list", armed, (all) =>
    table("Trouble at present", ["Trouble", "Container", "Happened"], all.map((one) => [one.text, one.container ?? "any", hits(one)])));
}

for (const one of document.querySelectorAll("[data-trouble]")) {
  one.addEventListener("click", () => act(
    () => ask("trouble", { kind: one.dataset.trouble, container: at("container").value }), () => `Armed: ${one.textContent}. Send a message.`));
}
at("calm").addEventListener("click", () => act(() => ask("calm", {}), () => "All trouble has ended."));
at("kill").addEventListener("click", () => act(() => ask("kill", {}), () =>
  "Killed. The app starts again; messages that were under way come back after 30 seconds."));
at("find").addEventListener("submit", (event) => {
  event.preventDefault();
  openEntity(at("type").value, at("key").value);
});
