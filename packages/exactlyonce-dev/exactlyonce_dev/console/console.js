// The page of the console: it asks again and again, and draws what has changed.

import { ask, at, say } from "./dom.js";
import { refreshMessages } from "./messages.js";
import { allow, refreshEntities, refreshParked, refreshTrouble, refreshTypes, refreshUnfinished } from "./panels.js";

const SLOW = 5;  // Rounds after which the store is asked although nothing has happened.
let about = null;
let rounds = 0;

async function begin() {
  about = await ask("about");
  say(`· ${about.place}`, "place");
  allow(about.acts);
  for (const one of document.querySelectorAll(".dev")) one.hidden = !about.dev;
  for (const one of document.querySelectorAll(".acts")) one.hidden = !about.acts;
}

async function refresh(all) {
  let problem = "";
  const attempt = async (one) => {
    try {
      return await one();
    } catch (error) {
      problem = error.message;
      return false;
    }
  };
  if (about === null) await attempt(begin);
  if (about !== null) {
    const changed = about.dev && await attempt(refreshMessages);
    if (about.dev) await attempt(refreshTrouble);
    if (all || changed) {
      for (const one of [refreshTypes, refreshEntities, refreshUnfinished, refreshParked]) await attempt(one);
    }
  }
  say(problem || (about.dev ? "The app runs." : about.acts ? "Requeues and discards." : "Reads only."), "app");
  at("app").classList.toggle("bad-text", problem !== "");
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
