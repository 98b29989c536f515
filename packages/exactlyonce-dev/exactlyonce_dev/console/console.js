// The page of the console: it asks again and again, and draws what has changed.

import { ask, at, say } from "./dom.js";
import { app, refreshMessages } from "./messages.js";
import { allow, refreshEntities, refreshParked, refreshTrouble, refreshTypes, refreshUnfinished } from "./panels.js";

const STATES = {
  starts: "The app starts …",
  runs: "The app runs.",
  killed: "The app was killed, and starts again …",
  ended: "The app ended. It starts again when one of its files changes.",
};
const SLOW = 5;  // Rounds after which the store is asked although nothing has happened.
let about = null;
let rounds = 0;
let before = "";

async function begin() {
  about = await ask("about");
  say(`· ${about.place}`, "place");
  allow(about.acts);
  for (const one of document.querySelectorAll(".dev")) one.hidden = !about.dev;
  for (const one of document.querySelectorAll(".acts")) one.hidden = !about.acts;
}

async function refresh(all) {
  let problem = "";
  let early = "";
  const attempt = async (one) => {
    try {
      return await one();
    } catch (error) {
      if (error.isEarly) early = error.message;
      else problem = error.message;
      return false;
    }
  };
  if (about === null) await attempt(begin);
  if (about !== null) {
    const changed = about.dev && await attempt(refreshMessages);
    if (about.dev) await attempt(refreshTrouble);
    const state = about.dev ? app : "runs";
    if (state !== "runs" && at("status").textContent.startsWith("The process will be killed")) say("The process was killed there.");
    if (state === "runs" && (all || changed || before !== state)) {
      for (const one of [refreshTypes, refreshEntities, refreshUnfinished, refreshParked]) await attempt(one);
    }
    before = state;
  }
  say(problem || early || (about.dev ? STATES[app] : about.acts ? "Requeues and discards." : "Reads only."), "app");
  at("app").classList.toggle("bad-text", problem !== "" || Boolean(about?.dev && ["killed", "ended"].includes(app)));
}

async function follow() {
  // An account's requests are paid for, so it is asked less often.
  const seconds = about !== null && !about.dev ? 15 : 1;
  if (!document.hidden) await refresh(rounds++ % SLOW === 0 || seconds > 1);
  setTimeout(follow, seconds * 1000);
}

at("type").addEventListener("change", () => refresh(true));
document.addEventListener("changed", () => refresh(true));
follow();
