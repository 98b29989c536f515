// The panel of messages: deliveries, the flow that each is part of, and what happened in it step by step.

import { act, ask, at, button, choose, draw, element, json, name, named, open, reveal, say, table, time } from "./dom.js";
import { openEntity } from "./panels.js";

let version = "";
export let app = "starts";
let messages = [];
let opened = null;

const GOOD = ["processed", "duplicate dropped", "published later"];
const BAD = ["failed", "parked", "lost with the process"];
const outcome = (text) =>
  element("span", text, { class: GOOD.includes(text) ? "good-text" : BAD.includes(text) ? "bad-text" : "" });
const LOOKS = { good: "good-text", lost: "bad-text", conflict: "bad-text" };

const conflicts = (one) => one.steps.filter((step) => step.look === "conflict" || step.look === "lost").length;
const attempts = (one) => Math.max(1, ...one.steps.map((step) => step.attempt));

export async function refreshMessages() {
  const found = await ask(`messages?version=${encodeURIComponent(version)}`);
  const changed = version !== found.version;
  app = found.app;
  version = found.version;
  if (!found.messages) return changed;
  messages = found.messages;
  draw("messages-list", messages, (all) => all.length ?
    table("Deliveries", ["Message", "Entity", "Outcome", "Outputs", "Time"], all.map(row)) :
    element("p", "No message has come yet. Call one of the addresses in the log of exactlyonce dev, and watch it here.", { class: "empty" }));
  if (opened !== null && !at("message").hidden) showMessage(opened);
  choose("step", steps());
  return changed;
}

function row(one) {
  const more = [attempts(one) > 1 ? `${attempts(one)} attempts` : null, conflicts(one) ? "trouble survived" : null].filter(Boolean);
  const title = one.message ? named(one.message) : "the sweeper";
  return [
    [button(name(title), `show-${one.id}`, "", () => openMessage(one.id), "link"), element("div", one.type ?? "", { class: "quiet" })],
    name(one.entity.name),
    [outcome(one.outcome), element("div", more.join(", "), { class: "quiet" })],
    one.outputs.length ? one.outputs.map((output) => element("div", `→ ${output.destination}`)) : "-",
    time(one.at),
  ];
}

function openMessage(id) {
  opened = id;
  showMessage(id);
  at("test").hidden = true;
  at("test").replaceChildren();
  at("message").focus();
}

function showMessage(id) {
  const one = messages.find((each) => each.id === id);
  if (!one) return;
  draw("message", [one, flowOf(one)], () => {
    open("message", details(one), () => { opened = null; });
    return [...at("message").children];
  });
  reveal("message");
}

function details(one) {
  const seconds = one.seconds === undefined ? "" : ` after ${Math.round(one.seconds * 1000)} ms`;
  const actions = [];
  if (one.envelope && one.destination) {
    actions.push(button("Send again", `again-${one.id}`, one.message, () => sendAgain(one)));
  }
  if (deliveriesOf(one.message).some((each) => each.envelope)) actions.push(button("Copy as test", `test-${one.id}`, one.message, () => copyAsTest(one)));
  if (one.entity.key) {
    actions.push(button("Show entity", `entity-of-${one.id}`, one.entity.name, () => openEntity(one.entity.type, one.entity.key)));
  }
  return [
    element("h3", one.message ? named(one.message) : "Published by the sweeper"),
    element("p", [one.type ? `${one.type} for ` : "For ", element("strong", one.entity.name), ": ", outcome(one.outcome), seconds]),
    one.reason ? element("p", one.reason, { class: "reason" }) : null,
    one.trace ? element("details", [element("summary", "Trace"), element("pre", one.trace)]) : null,
    actions.length ? element("p", actions, { class: "row" }) : null,
    element("h4", "Flow"),
    flow(one),
    element("h4", "What happened, step by step"),
    one.steps.length ? element("ol", one.steps.map((step) => happened(step, one)), { class: "steps" }) : element("p", "No step is known.", { class: "quiet" }),
    one.killed ? element("p", `The process was killed ${one.killed.when} “${one.killed.title}”.`, { class: "bad-text" }) : null,
    one.refused ? element("p", `Refused (${one.refused}): another request had its key. Nothing was changed.`) : null,
    one.answer ? element("p", [`Answered with status ${one.answer.status}: `, element("code", one.answer.body ?? "no body")]) : null,
    one.envelope ? element("details", [element("summary", "Envelope"), json(one.envelope)]) : null,
  ];
}

function happened(step, one) {
  const lost = { reply: "on purpose: it was applied, and the reply was lost", request: "on purpose: the request was lost" }[step.lost];
  const again = step.kind === "again";
  return element("li", [
    element("div", [
      element("strong", step.title), " ",
      step.effect ? element("code", step.effect) : null, " ",
      element("span", step.reply, { class: LOOKS[step.look] ?? "quiet" }),
      lost ? element("span", ` (${lost})`, { class: "bad-text" }) : null,
    ]),
    step.why ? element("div", step.why, { class: "quiet" }) : null,
    again ? null : element("details", [
      element("summary", "Break it here"),
      element("p", ["before", "after"].map((when) =>
        button(`Kill ${when} it`, `kill-${when}-${one.id}-${step.number}`, step.title, () =>
          endAt(when, step.effect, step.title, one.entity.type), "bad")), { class: "row" }),
    ]),
  ], { class: again ? "again" : "" });
}

// Flows

const deliveriesOf = (message) => messages.filter((one) => one.message === message).reverse();

function flowOf(one) {
  const causes = new Map(messages.flatMap((each) => each.outputs.map((output) => [output.message, each.message])));
  const calls = new Map(messages.flatMap((each) => each.outputs.map((output) => [output.id, each.message])));
  const replies = new Map();
  for (const each of messages) {
    const call = each.envelope?.replyto;
    if (call && calls.has(call)) {
      causes.set(each.message, calls.get(call));
      replies.set(call, each.message);
    }
  }
  let root = one.message;
  for (const seen = new Set(); causes.has(root) && !seen.has(root); root = causes.get(root)) seen.add(root);
  const node = (message, where, depth) => {
    const all = deliveriesOf(message);
    const outputs = new Map(all.flatMap((each) => each.outputs).map((output) => [output.message, output]));
    const next = depth > 20 ? [] : [...outputs.values()].flatMap((output) => {
      const reply = replies.get(output.id);
      return [node(output.message, output.destination, depth + 1), ...(reply ? [node(reply, "its reply", depth + 1)] : [])];
    });
    return { message, where, deliveries: all.map((each) => [each.id, each.outcome, each.entity.name]), next };
  };
  return node(root, "", 0);
}

function flow(one) {
  const line = (found) => element("li", [
    found.where ? element("span", `→ ${found.where}: `, { class: "quiet" }) : null,
    found.deliveries.length ? found.deliveries.map(([id, text, entity], place) => element("span", [
      place ? ", then " : "",
      button(place ? "again" : `${named(found.message)}, ${entity}`, `flow-${id}`, `${text}`, () => openMessage(id), id === one.id ? "link here" : "link"),
      " ", outcome(text),
    ])) : element("span", `${named(found.message)}, not delivered to this app`, { class: "quiet" }),
    found.next.length ? element("ul", found.next.map(line)) : null,
  ]);
  return element("ul", line(flowOf(one)), { class: "flow" });
}

// Actions

const sendAgain = (one) =>
  act(() => ask("again", { type: one.entity.type, envelope: one.envelope }), (found) => `Sent again to ${found.destination}.`);

const endAt = (when, effect, title, type) =>
  act(() => ask("end", { when, effect, title, type }), () => `The process will be killed ${when} “${title}” of the next ${type}. Send a message.`);

const copyAsTest = (one) => {
  say("The test is being written and run …");
  return act(() => ask("test", { id: one.id }), async (found) => {
    const copy = button("Copy", "test-copy", "the test", async () => {
      await navigator.clipboard.writeText(found.text);
      say("Copied. Save it as tests/test_story.py of the app.");
    });
    open("test", [
      element("h3", "What happened, as a test of the app"),
      element("p", found.passes ? `It passes here in ${found.seconds} s.` : "It does not pass here.",
        { id: "test-result", class: found.passes ? "good-text" : "bad-text" }),
      found.notes.length ? element("ul", found.notes.map((note) => element("li", note))) : null,
      found.passes ? null : element("details", [element("summary", "What pytest says"), element("pre", found.output, { id: "test-output", tabindex: "0" })]),
      element("p", ["Save it as ", element("code", "tests/test_story.py"), " and run ", element("code", "pytest"), "."]),
      element("p", copy),
      element("pre", found.text, { id: "test-text", tabindex: "0" }),
    ]);
    at("test").focus();
    return found.passes ? "The story is written as a test, which passes." : "The story is written as a test, which does not pass here.";
  });
};

// Every step of a protocol that was seen, as a place to kill the process.
function steps() {
  const found = new Map();
  for (const one of messages) {
    for (const step of one.steps.filter((each) => each.effect)) {
      const place = JSON.stringify({ effect: step.effect, title: step.title, type: one.entity.type });
      found.set(place, `${one.entity.type}: ${step.title}`);
    }
  }
  return found.size ? [...found].sort((one, other) => one[1].localeCompare(other[1])) : [["", "send a message first"]];
}

for (const when of ["before", "after"]) {
  at(`kill-${when}`).addEventListener("click", () => {
    if (!at("step").value) return say("Send a message first: its steps are the places where the process can be killed.");
    const { effect, title, type } = JSON.parse(at("step").value);
    return endAt(when, effect, title, type);
  });
}
