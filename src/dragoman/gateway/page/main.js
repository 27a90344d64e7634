// The page: which session is shown, and what a person does with it.

import { find, harmless, make, visible } from "./dom.js";
import { askForToken, login } from "./login.js";
import { answered, chooseAgent, chosenAgent, draft, forget, forgetPageKey, keepDraft } from "./memory.js";
import { recall, remember, rememberAnswer } from "./memory.js";
import { forgetNewOptions, keepNext, newOptions, next, rememberNewOptions } from "./memory.js";
import { Questions } from "./question.js";
import { RewindPanel } from "./rewind.js";
import { Story } from "./story.js";
import { drawOptions, drawPlan, redrawOptions, usageText } from "./surroundings.js";
import { post, Wire } from "./wire.js";

const STORIES = 8; // sessions that this page follows at once; the one not looked at for longest is let go
const PAGES = 20; // of the list, when a session is looked for by its id
const HAND = 1000; // milliseconds after a movement of the hand in which the transcript may still move because of it
const ENDED = "Your login has ended. Log in again; what you have written is kept.";

const stories = new Map(); // by id, the one shown last at the end
const known = new Map(); // sessions of the list, by id
let wire = null;
let me = null;
let shown = null;
let cursor = null;
let frame = null;
let reopened = () => {};
let opened = Promise.resolve(); // the session that is shown is open in the connection there is
let beginning = null; // the session that is being made for the first prompt
// The session that the next prompt makes, while none is shown: what a new one offers, and what was chosen of that.
let offered = [];
let chosen = {};

// -- coming and going -------------------------------------------------------------------------------------------------

function enter(who) {
  me = who;
  find("app").hidden = false;
  find("who").textContent = visible(who.name);
  offerAgents(who.agents ?? []);
  const drafted = next(who.name);
  find("folder").value = drafted.folder || find("folder").value || who.folder;
  chosen = drafted.chosen ?? {};
  offered = newOptions(who.name);
  find("prompt").value = draft(who.name);
  stories.clear();
  shown = null;
  const remembered = recall();
  for (const [id, one] of Object.entries(remembered?.sessions ?? {})) {
    const story = storyOf(id);
    const { from, cwd, options, optionsAt, title } = one;
    Object.assign(story, { from, cwd, options, optionsAt, title });
  }
  const last = drafted.open ? undefined : [...stories.values()].at(-1);
  const wanted = named() ? stories.get(named()) : last;
  if (!remembered?.connection || !wanted) {
    notOpen();
    wire = new Wire(listener, agentPath());
    return;
  }
  // This tab was reloaded: its connection goes on, and says again what its stories are made of. Until the server has
  // said that it does, nothing is sent in it.
  notOpen();
  show(wanted);
  const after = Math.min(...[...stories.values()].map((story) => story.from));
  wire = new Wire(listener, agentPath(), { connection: remembered.connection, after });
  list();
}

/** Show the list of a server with several agents; another choice begins anew with that one. */
function offerAgents(names) {
  find("agents").hidden = names.length < 2;
  find("agent").replaceChildren(
    ...names.map((name) => make("option", { value: name }, visible(name))),
  );
  if (names.length > 1) find("agent").value = names.includes(chosenAgent()) ? chosenAgent() : names[0];
}

function changeAgent() {
  leave();
  chooseAgent(find("agent").value);
  keepNext("", {});
  location.assign("/");
}

/** The address of the agent of this tab, on a server with several. */
const agentPath = () => (find("agent").value ? `/acp/${encodeURIComponent(find("agent").value)}` : "/acp");

function leave() {
  wire?.close();
  wire = null;
  find("app").hidden = true;
}

/** Until there is a connection in which the session that is shown is open, what is sent waits. */
function notOpen() {
  const earlier = reopened;
  opened = new Promise((resolve) => {
    reopened = () => {
      earlier();
      resolve();
    };
  });
}

async function logOut() {
  leave();
  forget();
  keepDraft("", "");
  keepNext("", {});
  await post("/logout").catch(() => null);
  forgetPageKey();
  forgetNewOptions();
  location.assign("/");
}

// -- what the server says --------------------------------------------------------------------------------------------

const listener = {
  update({ sessionId, update }, number) {
    const story = stories.get(sessionId);
    if (story && number > story.from) {
      story.apply(update, number);
      if (story.partial && update.sessionUpdate === "state_update" && update.state === "idle") reopen(story);
    }
  },
  options(sessionId, options, number) {
    stories.get(sessionId)?.setOptions(options, number);
  },
  missed({ sessionId }, number) {
    const story = stories.get(sessionId);
    if (story && number > story.from) isPartial(story);
  },
  ask(id, method, params) {
    if (!answered().some(([one]) => one === id)) questions.ask(id, method, params);
  },
  restored(received) {
    remember({ answered: answered().filter(([, number]) => number <= received) });
    reopened();
    reopened = () => {};
  },
  withdrawn(id) {
    questions.withdraw(id);
  },
  lost() {
    questions.withdraw(null);
    notOpen();
  },
  state(word) {
    find("link").textContent = word;
  },
  async fresh(hello) {
    const current = shown;
    stories.clear();
    forget();
    remember({ deletes: Boolean(hello.capabilities?.session?.delete), rewinds: Boolean(hello._meta?.rewind?.supported) });
    await list();
    if (current) await open({ sessionId: current.id, cwd: current.cwd, title: current.title });
    else if (named()) await openNamed(named());
    else showNone();
    reopened();
    reopened = () => {};
  },
  gap() {
    for (const story of stories.values()) if (story !== shown) stories.delete(story.id);
    if (shown) reopen(shown);
  },
  loggedOut() {
    leave();
    askForToken(ENDED);
  },
};

const questions = new Questions(find("question"), {
  reply(id, result) {
    rememberAnswer(id, wire.answer(id, result));
  },
  refuse: (id) => wire.refuse(id),
  name: (id) => (id === undefined || id === shown?.id ? "" : stories.get(id)?.title || known.get(id)?.title || "another session"),
  call: (sessionId, callId) => stories.get(sessionId)?.calls.get(callId)?.seen,
  answered: focusPrompt,
});

const rewinding = new RewindPanel(find("rewind"), {
  ask: (params) => wire.request("_session/rewind", params),
  done(sessionId) {
    const story = stories.get(sessionId);
    if (story) reopen(story);
  },
  closed: focusPrompt,
});

// -- sessions --------------------------------------------------------------------------------------------------------

async function list(more = false) {
  const page = await tried(wire.request("session/list", more && cursor ? { cursor } : {}));
  if (!page) return;
  if (!more) known.clear();
  for (const session of page.sessions) known.set(session.sessionId, session);
  cursor = page.nextCursor ?? null;
  drawList();
}

function drawList() {
  // Sessions in which nothing was ever said are left out: there is nothing to open. Ours may have begun since we asked.
  const listed = [...known.values()].filter((session) => !session._meta?.["dragoman/empty"] || stories.has(session.sessionId));
  const rows = listed.map((session) => {
    const current = session.sessionId === shown?.id;
    const worktree = session._meta?.["dragoman/worktree"]?.name;
    const place = worktree ? `${session.cwd} · worktree ${harmless(worktree)}` : session.cwd;
    const button = make("button", { type: "button", "aria-current": current ? "true" : null, "data-session": session.sessionId },
      make("span", { class: "name" }, harmless(session.title || "Untitled")),
      make("span", { class: "faint" }, `${place}${session.updatedAt ? ` · ${when(session.updatedAt)}` : ""}`));
    button.addEventListener("click", () => {
      toggleMenu(false);
      find("trouble").hidden = true;
      open(session);
    });
    return make("li", {}, button);
  });
  find("list").replaceChildren(...rows);
  find("more").hidden = cursor === null;
}

function when(text) {
  const time = new Date(text);
  if (Number.isNaN(time.getTime())) return "";
  const today = time.toDateString() === new Date().toDateString();
  return today ? time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) : time.toLocaleDateString();
}

/** Make the session of the first prompt, with what was chosen for it. Nothing is sent where that cannot be had. */
async function makeSession() {
  if (!me.scopes.includes("prompt")) return;
  const from = wire.heard;
  const cwd = find("folder").value.trim() || me.folder;
  const wanted = shownBefore();
  const wish = find("worktree").checked ? { _meta: { "dragoman/worktree": true } } : {};
  const made = await tried(wire.request("session/new", { cwd, mcpServers: [], ...wish }));
  if (!made) return;
  find("worktree").checked = false;
  rememberNewOptions(me.name, (offered = made.configOptions ?? []));
  const story = storyOf(made.sessionId);
  Object.assign(story, { from, cwd, options: offered, optionsAt: wire.heard, state: "idle" });
  try {
    await setOptions(story, wanted);
  } catch (error) {
    stories.delete(story.id);
    wire.request("session/delete", { sessionId: story.id }).catch(() => null);
    chosen = {};
    showNone();
    return trouble(error.message);
  }
  chosen = {};
  find("trouble").hidden = true;
  show(story);
  list();
}

/** The options as they stand before there is a session: what is offered, with what was chosen. */
function shownBefore() {
  return offered.map((option) => (option.configId in chosen ? withValue(option, chosen[option.configId]) : option));
}

/** A model may be named that is not listed: whether there is such a one, the agent says when it is set. */
function withValue(option, value) {
  const rows = option.options?.flatMap((one) => one.options ?? [one]);
  const listed = !rows || rows.some((row) => row.value === value);
  return { ...option, currentValue: value, ...(!listed && { options: [...option.options, { value, name: value }] }) };
}

/** What was shown counts: an option that the new session has otherwise is set, before anything is sent. */
async function setOptions(story, wanted) {
  for (const { configId, type, currentValue } of wanted) {
    const there = story.options.find((option) => option.configId === configId);
    if (!there || there.type !== type) {
      if (configId in chosen) throw new Error(`A new session has no option ${visible(configId)} any more. Choose again.`);
      continue;
    }
    if (there.currentValue === currentValue) continue;
    const value = { type: type === "boolean" ? "boolean" : "id", value: currentValue };
    await wire.request("session/set_config_option", { sessionId: story.id, configId, ...value });
  }
}

/** A session is made when its first prompt is sent: looking, writing and choosing leave none behind. */
function begin() {
  if (shown || !wire) return beginning ?? Promise.resolve();
  beginning ??= opened.then(() => shown || makeSession()).finally(() => { beginning = null; });
  return beginning;
}

/** Show no session: the next prompt makes one. */
async function startAnew() {
  if (!me.scopes.includes("prompt")) return;
  find("trouble").hidden = true;
  chosen = {};
  showNone();
  if (offered.length || !recall()?.deletes) return;
  // What can be chosen is known of a session alone: of one that is deleted as soon as it has said so.
  const made = await tried(wire.request("session/new", { cwd: find("folder").value.trim() || me.folder, mcpServers: [] }));
  if (!made) return;
  await tried(wire.request("session/delete", { sessionId: made.sessionId }));
  rememberNewOptions(me.name, (offered = made.configOptions ?? []));
  if (!shown) drawNext();
}

function drawNext() {
  drawOptions({ id: "", options: shownBefore() }, (option, { value }) => {
    chosen[option.configId] = value;
    find("trouble").hidden = true;
    keepFirst();
    redrawOptions();
    drawNext();
  }, focusPrompt);
}

/** What is chosen for the next session outlives a reload, as what is written does. */
function keepFirst() {
  keepNext(me.name, { open: shown === null, folder: find("folder").value, chosen });
}

async function openNamed(id) {
  let next;
  for (let page = 0; page < PAGES; page += 1) {
    const found = await tried(wire.request("session/list", next ? { cursor: next } : {}));
    const session = found?.sessions.find((one) => one.sessionId === id);
    if (session) return open(session);
    next = found?.nextCursor;
    if (!next) break;
  }
  trouble("There is no such session here.");
  return showNone();
}

/** Show a session: what this page follows already as it stands, another by having its story told. */
async function open({ sessionId, cwd, title }) {
  const followed = stories.get(sessionId);
  if (followed) return show(followed);
  const story = storyOf(sessionId);
  Object.assign(story, { cwd, title: title ?? "", from: Infinity });
  show(story);
  return reopen(story);
}

async function reopen(story) {
  const params = { sessionId: story.id, cwd: story.cwd, mcpServers: [] };
  const told = { ...params, replayFrom: { type: "start" } };
  const title = story.title;
  story.clear();
  story.title = title;
  story.from = wire.heard;
  story.partial = false;
  try {
    await wire.request("session/resume", told);
  } catch (error) {
    if (error.data?.reason !== "busy") {
      stories.delete(story.id);
      if (story === shown) showNone();
      return trouble(error.message);
    }
    isPartial(story); // its turn has just begun
    if (!(await tried(wire.request("session/resume", params)))) return undefined;
  }
  return changed(story);
}

/** A story is told when no turn runs; until then there is what can be had of this one. */
function isPartial(story) {
  story.partial = true;
  story.line("notice info", "A turn is running. What came before it is shown when it ends.");
}

function storyOf(id) {
  let story = stories.get(id);
  if (!story) {
    stories.set(id, (story = new Story(id, changed)));
    for (const old of stories.values()) {
      if (stories.size <= STORIES) break;
      if (old !== shown && !old.running) stories.delete(old.id);
    }
  }
  return story;
}

function show(story) {
  rewinding.close();
  shown = story;
  stories.delete(story.id);
  stories.set(story.id, story);
  history.replaceState(null, "", `#session=${encodeURIComponent(story.id)}`);
  find("transcript").replaceChildren(story.element);
  changed(story);
  follow(true);
  drawList();
  keepFirst();
  focusPrompt();
}

function showNone() {
  shown = null;
  history.replaceState(null, "", location.pathname);
  find("title").textContent = "New session";
  document.title = "Dragoman";
  find("transcript").replaceChildren();
  redrawOptions();
  drawNext();
  find("stop").hidden = find("plan").hidden = true;
  find("usage").textContent = "";
  drawScopes();
  drawList();
  keepFirst();
  focusPrompt();
}

/** What is typed next is meant for the prompt. A finger gets no keyboard that it did not ask for. */
function focusPrompt() {
  if (!matchMedia("(pointer: coarse)").matches && find("question").hidden) find("prompt").focus();
}

function named() {
  return new URLSearchParams(location.hash.slice(1)).get("session");
}

/** Which connection this tab has, and from which message on its stories are told in it. */
function keep() {
  if (!wire?.connection) return;
  const told = [...stories.values()].filter((story) => Number.isFinite(story.from) && !story.partial);
  const sessions = Object.fromEntries(told.map(({ id, from, cwd, options, optionsAt, title }) => [id, { from, cwd, options, optionsAt, title }]));
  remember({ connection: wire.connection, sessions });
}

// -- drawing ---------------------------------------------------------------------------------------------------------

let fullDraw = false;
let following = true;
let stood = 0; // where the transcript stood last
let hand = -Infinity; // when a hand last moved it, or tried to

/** Something has changed; it is drawn with the next frame. `inside`: only in the transcript. */
function changed(story, inside = false) {
  if (!inside) keep();
  if (story !== shown) return;
  fullDraw ||= !inside;
  frame ??= requestAnimationFrame(draw);
}

function draw() {
  frame = null;
  if (!shown) return;
  shown.draw();
  if (fullDraw) {
    fullDraw = false;
    drawFrame(shown);
  }
  follow();
}

/** Scroll the transcript to its end, unless the user has scrolled up. */
function follow(wanted = following) {
  following = wanted;
  if (!wanted) return;
  find("transcript").scrollTop = find("transcript").scrollHeight;
  stood = find("transcript").scrollTop;
}

/** Note whether the user has scrolled up or back to the end. A transcript also moves when it grows or gets the room of
 *  a question, so only a movement soon after one of the hand counts as scrolling up. */
function scrolled({ target }) {
  const byHand = performance.now() - hand < HAND;
  if (target.scrollTop + target.clientHeight >= target.scrollHeight - 40) following = true;
  else if (byHand && target.scrollTop < stood) {
    following = false;
    hand = performance.now(); // what was pushed rolls on
  }
  stood = target.scrollTop;
}

function handMoved() {
  hand = performance.now();
}

let wasRunning = false;

function drawFrame(story) {
  const title = story.title || "New session";
  find("title").textContent = harmless(title);
  const listed = known.get(story.id);
  if (listed && story.title && listed.title !== story.title) {
    listed.title = story.title;
    drawList();
  }
  document.title = `${story.running ? "● " : ""}${title} – Dragoman`;
  find("transcript").dataset.state = story.state;
  find("transcript").classList.toggle("rewinds", Boolean(recall()?.rewinds) && me.scopes.includes("prompt"));
  find("stop").hidden = !story.running;
  drawScopes();
  find("usage").textContent = usageText(story);
  drawPlan(story);
  drawOptions(story, (option, value) => choose(story, option, value), focusPrompt);
  if (wasRunning && !story.running && wire) list();
  wasRunning = story.running;
}

function drawScopes() {
  const mayPrompt = me.scopes.includes("prompt");
  find("prompt").disabled = find("send").disabled = find("make").disabled = !mayPrompt;
}

async function choose(story, option, value) {
  const answer = await tried(wire.request("session/set_config_option", { sessionId: story.id, configId: option.configId, ...value }));
  if (answer) find("trouble").hidden = true;
  redrawOptions(); // what was refused is not shown as chosen
  changed(story);
}

// -- what a person does ----------------------------------------------------------------------------------------------

async function send() {
  const text = find("prompt").value;
  if (!text.trim() || !wire) return;
  find("prompt").value = "";
  keepDraft(me.name, wire.ready ? "" : text);
  await begin();
  if (!shown) return giveBack(text);
  let story = shown;
  find("trouble").hidden = true;
  follow(true);
  let taken = story.queued(text);
  await opened;
  if (stories.get(story.id) !== story) {
    taken();
    if (!stories.has(story.id)) return giveBack(text); // it could not be opened again
    story = stories.get(story.id);
    taken = story.queued(text);
  }
  try {
    await wire.request("session/prompt", { sessionId: story.id, prompt: [{ type: "text", text }] });
    keepDraft(me.name, find("prompt").value);
  } catch (error) {
    if (story === shown) giveBack(text);
    trouble(error.message);
  } finally {
    taken();
  }
}

/** What was not sent stands before what has been written since. */
function giveBack(text) {
  const field = find("prompt");
  field.value = [text, field.value].filter(Boolean).join("\n\n");
  keepDraft(me.name, field.value);
}

function stop() {
  if (shown?.running) wire.notify("session/cancel", { sessionId: shown.id });
  focusPrompt();
}

function toggleMenu(wanted = !document.body.classList.contains("menu")) {
  document.body.classList.toggle("menu", wanted);
  find("menu").setAttribute("aria-expanded", String(wanted));
  if (wanted) find("list").querySelector("button")?.focus();
  else focusPrompt();
}

async function tried(promise) {
  try {
    return await promise;
  } catch (error) {
    trouble(error.message);
    return null;
  }
}

function trouble(sentence) {
  find("trouble").textContent = sentence;
  find("trouble").hidden = false;
}

// -- wiring ----------------------------------------------------------------------------------------------------------

find("plan").open = !matchMedia("(max-width: 46rem)").matches;
if (matchMedia("(pointer: coarse)").matches) find("prompt").placeholder = "Say what to do.";
find("logout").addEventListener("click", logOut);
find("agent").addEventListener("change", changeAgent);
find("menu").addEventListener("click", () => toggleMenu());
find("more").addEventListener("click", () => list(true));
find("new").addEventListener("submit", (event) => {
  event.preventDefault();
  toggleMenu(false);
  startAnew();
});
find("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
find("stop").addEventListener("click", stop);
find("transcript").addEventListener("scroll", scrolled);
for (const kind of ["wheel", "touchmove", "keydown"]) find("transcript").addEventListener(kind, handMoved, { passive: true });
find("transcript").addEventListener("pointerdown", (event) => event.target === event.currentTarget && handMoved()); // its bar
find("transcript").addEventListener("pointermove", (event) => event.buttons && handMoved());
new ResizeObserver(() => follow()).observe(find("transcript")); // a question takes some of its room
find("transcript").addEventListener("click", ({ target }) => {
  if (target.matches?.(".back") && shown) rewinding.open(shown.id, target.dataset.message);
});
find("prompt").addEventListener("input", ({ target }) => {
  keepDraft(me.name, target.value);
});
find("folder").addEventListener("input", keepFirst);
find("prompt").addEventListener("keydown", (event) => {
  const sends = event.key === "Enter" && !event.shiftKey && !event.isComposing && !matchMedia("(pointer: coarse)").matches;
  if (sends) {
    event.preventDefault();
    send();
  }
});
addEventListener("keydown", (event) => {
  const typing = ["TEXTAREA", "INPUT", "SELECT"].includes(document.activeElement?.tagName);
  if (event.key === "Escape" && document.body.classList.contains("menu")) toggleMenu(false);
  else if (event.key === "Escape") stop();
  else if (event.key === "/" && !typing && find("question").hidden) {
    event.preventDefault();
    find("prompt").focus();
  }
});
addEventListener("hashchange", (event) => {
  // As it was when it changed: the page itself may have written another one since.
  const { hash } = new URL(event.newURL);
  if (new URLSearchParams(hash.slice(1)).get("token")) {
    history.replaceState(null, "", location.pathname + hash);
    location.reload();
  } else if (named() && named() !== shown?.id) openNamed(named());
});

login(enter).then(() => {
  const unexplained = !find("login").hidden && !find("login-trouble").textContent;
  if (unexplained && recall()) askForToken(ENDED); // this tab was logged in
});
