"use strict";
/* The page keeps the entries of the fleet by key, and draws those that can be seen: a list knows how high its
   items are before they are drawn, so a thousand clusters cost as much as a dozen. All text is textContent. */
(() => {
  const byId = (id) => document.getElementById(id);
  const entries = new Map();
  const happened = [];
  const opened = new Date();
  const clock = (when) => when.toTimeString().slice(0, 8);

  /* element("div.pool", {title}, child, "text") */
  const element = (name, facts, ...children) => {
    const [tag, ...classes] = name.split(".");
    const made = document.createElement(tag);
    if (classes.length) made.className = classes.join(" ");
    for (const [key, value] of Object.entries(facts || {})) {
      if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
      else if (key in made) made[key] = value;
      else made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  };
  const counted = (number, noun) => number.toLocaleString("en") + " " + noun + (number === 1 ? "" : "s");
  const palette = (colour) => "p" + colour % 6 + " t" + Math.floor(colour / 6);

  /* A list that draws what can be seen. `items`: {key, height, value}; rows are as high as their highest item. */
  class List {
    constructor(box, { width, gap, draw, open, empty }) {
      Object.assign(this, { box, width, gap, draw, open, items: [], rows: [], drawn: new Map(), at: -1 });
      this.extent = element("div.extent");
      this.nothing = element("p.soft", {}, empty);
      box.append(this.extent, this.nothing);
      box.addEventListener("scroll", () => this.later(), { passive: true });
      box.addEventListener("keydown", (event) => this.key(event));
      box.addEventListener("focus", () => this.select(Math.max(this.at, 0)));
      new ResizeObserver(() => this.layOut()).observe(box);
    }

    show(items) {
      const key = this.at >= 0 && this.items[this.at] ? this.items[this.at].key : null;
      this.items = items;
      this.nothing.hidden = items.length > 0;
      this.at = items.findIndex((item) => item.key === key);
      this.layOut();
    }

    layOut() {
      const room = this.box.clientWidth;
      if (!room) return;
      this.columns = this.width ? Math.max(1, Math.floor((room + this.gap) / (this.width + this.gap))) : 1;
      this.across = (room - this.gap * (this.columns - 1) - (this.width ? 4 : 0)) / this.columns;
      this.rows = [];
      let top = 0;
      for (let first = 0; first < this.items.length; first += this.columns) {
        let height = 0;
        for (let at = first; at < Math.min(first + this.columns, this.items.length); at += 1) height = Math.max(height, this.items[at].height);
        this.rows.push({ first, top, height });
        top += height + this.gap;
      }
      this.extent.style.height = top + "px";
      this.later();
    }

    later() {
      if (this.frame) return;
      this.frame = requestAnimationFrame(() => { this.frame = 0; this.paint(); });
    }

    rowAt(y) {
      let low = 0;
      let high = this.rows.length - 1;
      while (low < high) {
        const middle = (low + high + 1) >> 1;
        if (this.rows[middle].top <= y) low = middle; else high = middle - 1;
      }
      return low;
    }

    paint() {
      const top = this.box.scrollTop;
      const bottom = top + this.box.clientHeight;
      const wanted = new Set();
      for (let row = this.rowAt(top - 200); row < this.rows.length && this.rows[row].top < bottom + 200; row += 1) {
        const { first, top: at, height } = this.rows[row];
        for (let index = first; index < Math.min(first + this.columns, this.items.length); index += 1) {
          wanted.add(this.items[index].key);
          this.place(index, at, height, index - first);
        }
      }
      for (const [key, { node }] of this.drawn) if (!wanted.has(key)) { node.remove(); this.drawn.delete(key); }
    }

    place(index, top, height, column) {
      const item = this.items[index];
      let drawn = this.drawn.get(item.key);
      if (!drawn || drawn.value !== item.value) {
        const node = this.draw(item);
        node.classList.add("item");
        node.tabIndex = -1;
        node.setAttribute("role", "listitem");
        node.addEventListener("click", () => { this.select(this.items.findIndex((one) => one.key === item.key)); this.open(item); });
        const had = drawn && drawn.node === document.activeElement;
        if (drawn) { drawn.node.replaceWith(node); node.classList.add("fresh"); } else this.box.append(node);
        if (had) node.focus({ preventScroll: true });
        drawn = { node, value: item.value };
        this.drawn.set(item.key, drawn);
      }
      const { node } = drawn;
      node.setAttribute("aria-setsize", this.items.length);
      node.setAttribute("aria-posinset", index + 1);
      Object.assign(node.style, {
        top: top + "px", left: column * (this.across + this.gap) + "px", width: this.across + "px", height: height + "px",
      });
    }

    select(index) {
      if (!this.items.length) return;
      this.at = Math.min(Math.max(index, 0), this.items.length - 1);
      const { top, height } = this.rows[Math.floor(this.at / this.columns)];
      if (top < this.box.scrollTop) this.box.scrollTop = top;
      else if (top + height > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = top + height - this.box.clientHeight;
      this.paint();
      this.drawn.get(this.items[this.at].key).node.focus({ preventScroll: true });
    }

    key(event) {
      const steps = { ArrowDown: this.columns, ArrowUp: -this.columns, ArrowRight: 1, ArrowLeft: -1, Home: -this.items.length, End: this.items.length,
        PageDown: this.columns * 5, PageUp: -this.columns * 5 };
      if (event.key in steps && !event.ctrlKey && !event.metaKey && !event.altKey) this.select(this.at + steps[event.key]);
      else if (event.key === "Enter" && this.at >= 0) this.open(this.items[this.at]);
      else return;
      event.preventDefault();
    }
  }

  /* Clusters: as on the map. */
  const SCALED = 12;
  const devicesOf = (cluster, pool) => (cluster.devices || []).filter(([name]) => name === pool.name);
  const loadedOn = (cluster) => Object.entries(cluster.adapters || {});
  const heightOf = (cluster) => 40 + 18 * cluster.notes.length + 16 * loadedOn(cluster).length + cluster.pools.reduce(
    (sum, pool) => sum + 44 + (devicesOf(cluster, pool).length ? 16 : 0) + (pool.over ? 18 : 0), 0);

  const drawPool = (cluster, pool) => {
    const drawn = pool.shares.reduce((sum, [, , nodes]) => sum + nodes, 0);
    const row = element("div.row" + (Math.max(pool.nodes, drawn) > SCALED ? ".scaled" : ""), { role: "img", title: pool.text, ariaLabel: pool.name + ": " + pool.text });
    const square = (classes, nodes) => {
      const part = element("i");
      part.className = classes;
      part.style.setProperty("--n", nodes);
      row.append(part);
    };
    for (const [, state, nodes, colour] of pool.shares) square(state + " " + palette(colour), nodes);
    if (pool.free) square("free", pool.free);
    const devices = devicesOf(cluster, pool).map(([, kind, held, all]) => held + " of " + all + " " + kind + " claimed");
    return element("div.pool", {},
      element("div.name", {}, element("span", {}, pool.name + (pool.class ? " · " + pool.class : "")), element("span", {}, pool.free + " of " + pool.nodes + " free")),
      row,
      devices.length ? element("div.devices", {}, devices.join(", ")) : null,
      pool.over ? element("div.over", {}, "overcommitted by " + pool.over) : null);
  };
  const drawCluster = ({ name, value }) => element("article.cluster", {},
    element("h3", {}, name, element("span.soft", {}, value.region)),
    ...value.notes.map(([, text]) => element("div.note", { title: text }, text)),
    ...value.pools.map((pool) => drawPool(value, pool)),
    ...loadedOn(value).map(([replica, names]) => element("div.devices", { title: replica + ": " + names.join(", ") },
      [replica, ...names].map((one) => one.slice(one.indexOf("/") + 1)).join(", ").replace(", ", ": "))));

  /* Deployments and adapters: the most urgent first. */
  const URGENCY = ["refused", "waiting", "leaving", "moving", "placing", "starting", "ready"];
  const said = (deployment) => deployment.stalled[0] || (["refused", "waiting"].includes(deployment.state) ? "" : deployment.unready[0])
    || deployment.reason + (deployment.message ? ": " + deployment.message : "");
  const placesOf = (adapter) => (adapter.places.length ? "on " + adapter.places.map(([replica, cluster]) => replica + " (" + cluster + ")").join(", ") : "on no replica");
  const drawDeployment = ({ name, value }) => {
    const swatch = element("i.swatch");
    swatch.className += " " + palette(value.colour);
    return element("article.deployment", {},
      element("h3", { title: name }, swatch, element("b", {}, name), element("span.state." + value.state, {}, value.state)),
      element("div.line", {}, value.placed + " of " + value.wanted + " placed, " + value.ready + " ready" + (value.price ? ", " + value.price : "")),
      element("div.line", { title: said(value) }, said(value)));
  };

  const drawAdapter = ({ name, value }) => element("article.deployment", {},
    element("h3", { title: name + " (adapter)" }, element("b", {}, name), element("span.soft", {}, "adapter"), element("span.state." + value.state, {}, value.state)),
    element("div.line", {}, value.placed + " of " + value.wanted + " placed, " + value.ready + " serving, " + value.scheduled),
    element("div.line", { title: placesOf(value) }, placesOf(value)),
    value.message ? element("div.line", { title: value.message }, value.reason + ": " + value.message) : null);

  const drawChange = ({ value }) => element("article.change", { title: value.text },
    element("div.line", {}, clock(new Date(value.at * 1000)) + "  ", element("b", {}, value.verb), " " + value.deployment),
    element("div.line", {}, value.text));

  /* Details: what a click opens. */
  const dialog = byId("detail");
  const body = byId("body");
  const titled = (text, ...parts) => (parts.length ? [element("h4", {}, text), ...parts] : []);
  const bullets = (lines) => (lines.length ? [element("ul", {}, ...lines.map((line) => element("li", {}, line)))] : []);
  let asking = 0;
  const show = (title, ...parts) => {
    asking += 1;
    byId("title").textContent = title;
    body.replaceChildren(...parts);
    if (!dialog.open) dialog.showModal();
  };
  const ask = async (path, facts) => {
    const answer = await fetch(path + "?" + new URLSearchParams(facts), { headers: { Accept: "application/json" } });
    const data = await answer.json();
    if (data.error) throw new Error(data.error);
    return data;
  };
  /* Put an answer into a place of the dialog, unless another was opened meanwhile. */
  const fill = async (place, path, facts, written) => {
    const turn = asking;
    place.replaceChildren(element("p.soft", {}, "Asking the scheduler."));
    let parts;
    try { parts = written(await ask(path, facts)); } catch (error) { parts = [element("p.worse", {}, String(error.message))]; }
    if (turn === asking) place.replaceChildren(...parts);
  };

  const writeWhy = (why) => {
    const clusters = why.placement.clusters.map((one) => one.name + ": " + one.verdict + (one.reason ? ", " + one.reason : "") + (one.message ? ": " + one.message : ""));
    return [
      element("p", {}, why.summary),
      ...titled("What would help", ...bullets(why.placement.hints.map((hint) => hint.message))),
      ...titled("Worth a look", ...bullets([...why.placement.lint.map((one) => one.message), ...why.partlyHeld.map((one) => one.message)])),
      ...titled("Conditions", ...bullets(why.conditions.map((one) => one.type + ": " + one.status + ", " + one.reason + (one.message ? ": " + one.message : "")))),
      ...titled("Replicas", ...bullets([...why.placement.replicas, ...why.placement.dropped].map((one) => one.name + " on " + one.cluster + ": " + (one.action ? one.action + ", " + one.because : "leaves, " + one.message)))),
      ...titled("Clusters, the nearest miss first", ...bullets(clusters)),
    ];
  };
  const writeWhyAdapter = (why) => [
    ...titled("What would help", ...bullets(why.hints.map((hint) => hint.change + ", and " + hint.unlocks + " more"))),
    ...titled("Conditions", ...bullets(why.conditions.map((one) => one.type + ": " + one.status + ", " + one.reason + (one.message ? ": " + one.message : "")))),
    ...titled("Replicas of the base", ...bullets(why.replicas.map((one) => one.name + " on " + one.cluster + ": " + one.action + ", " + one.why
      + (one.slots === undefined ? "" : "; " + one.adapters.length + " of " + one.slots + " slots")))),
  ];
  const writeWhatIf = (answer) => {
    const changed = answer.deployments.filter((one) => one.changed);
    const worse = changed.filter((one) => one.worse).length;
    const lines = changed.flatMap((one) => [
      element("p" + (one.worse ? ".worse" : ""), {}, one.deployment + ": " + one.before.placed + " of " + one.before.wanted + " placed, then " + one.after.placed + " of " + one.after.wanted
        + (one.shortfall ? " (" + one.after.reason + ": " + one.after.message + ")" : "")),
      ...bullets([...one.leaving.map((row) => row.name + " leaves " + row.cluster + ": " + row.why), ...one.arriving.map((row) => row.name + " comes to " + row.cluster)]),
    ]);
    const places = (answer.adapters || []).filter((one) => one.changed).flatMap((one) => [
      element("p" + (one.worse ? ".worse" : ""), {}, one.adapter + " (adapter): " + one.before.placed + " of " + one.before.wanted + " placed, then " + one.after.placed + " of " + one.after.wanted),
      ...bullets([...one.leaving.map((row) => "leaves " + row.name + " on " + row.cluster), ...one.arriving.map((row) => "comes to " + row.name + " on " + row.cluster)]),
    ]);
    return [
      element("p", {}, answer.changes.join("; ") + ": " + counted(changed.length, "deployment") + " concerned, " + worse + " worse off" + (answer.settles ? "." : "; the fleet does not settle.")),
      ...lines,
      ...places,
      ...titled("To make the change", element("pre", {}, answer.commands.apply.join("\n"))),
      ...titled("To take it back", element("pre", {}, answer.commands.revert.join("\n"))),
    ];
  };

  const answerPlace = () => element("div", { ariaLive: "polite" });
  const openDeployment = ({ name, value }) => {
    const place = answerPlace();
    const number = element("input", { type: "number", min: 0, max: 9999999, value: value.wanted + 1, ariaLabel: "replicas" });
    const whatif = () => fill(place, "/whatif", { deployment: name, replicas: number.value }, writeWhatIf);
    show(name,
      element("p", {}, value.state + ": " + said(value)),
      element("div.ask", {}, element("button", { type: "button", onclick: () => fill(place, "/why", { deployment: name }, writeWhy) }, "Why?"),
        element("button", { type: "button", onclick: whatif }, "What if it wanted"), number, "replicas"),
      place);
    fill(place, "/why", { deployment: name }, writeWhy);
  };
  const openAdapter = ({ name, value }) => {
    const place = answerPlace();
    show(name + " (adapter)", element("p", {}, value.state + ": " + value.reason + (value.message ? ": " + value.message : "")), element("p", {}, placesOf(value)), place);
    fill(place, "/why", { adapter: name }, writeWhyAdapter);
  };
  const openCluster = ({ name, value }) => {
    const place = answerPlace();
    const pools = value.pools.map((pool) => {
      const number = element("input", { type: "number", min: -9999999, max: 9999999, value: 1, ariaLabel: "nodes" });
      const whatif = () => fill(place, "/whatif", { cluster: name, pool: pool.name, nodes: number.value }, writeWhatIf);
      return element("div.ask", {}, element("button", { type: "button", onclick: whatif }, "What if " + pool.name + " had"), number, "more nodes");
    });
    show(name,
      element("p", {}, value.region + ", " + value.held + " of " + counted(value.nodes, "node") + " held"),
      ...titled("What keeps new replicas away", ...bullets(value.notes.map(([, text]) => text))),
      ...titled("Pools", ...bullets(value.pools.map((pool) => pool.name + ": " + pool.text))),
      ...titled("Adapters", ...bullets(loadedOn(value).map(([replica, names]) => replica + ": " + names.join(", ")))),
      element("div.ask", {}, element("button", { type: "button", onclick: () => fill(place, "/whatif", { drain: name }, writeWhatIf) }, "What if it were drained?")),
      ...pools, place);
  };
  const openEntry = (item) => (item.kind === "adapter" ? openAdapter : openDeployment)(item);
  const openChange = ({ value }) => {
    const entry = entries.get(value.kind + "/" + value.deployment);
    if (entry) openEntry({ kind: value.kind, name: value.deployment, value: entry });
  };

  const lists = {
    clusters: new List(byId("clusters"), { width: 270, gap: 10, draw: drawCluster, open: openCluster, empty: "No cluster matches." }),
    deployments: new List(byId("deployments"), { width: 0, gap: 0, draw: (item) => (item.kind === "adapter" ? drawAdapter : drawDeployment)(item), open: openEntry, empty: "No deployment matches." }),
    changes: new List(byId("changes"), { width: 0, gap: 0, draw: drawChange, open: openChange, empty: "Nothing has changed yet." }),
  };

  /* Filters, and the sentence above. */
  const search = byId("search");
  const region = byId("region");
  const problems = byId("problems");
  const ofKind = (kind) => [...entries].filter(([key]) => key.startsWith(kind + "/"))
    .map(([key, value]) => ({ key, kind, name: key.slice(kind.length + 1), value }));
  const byName = (one, other) => (one.name < other.name ? -1 : 1);
  let clusters = [];
  let deployments = [];
  let adapters = [];

  const offerRegions = () => {
    const names = [...new Set(clusters.map(({ value }) => value.region))].sort();
    const offered = [...region.options].slice(1).map((option) => option.value);
    if (names.join("\n") === offered.join("\n")) return;
    const before = region.value;
    region.replaceChildren(element("option", { value: "" }, "all"), ...names.map((name) => element("option", { value: name }, name)));
    region.value = names.includes(before) ? before : "";
  };

  const filter = () => {
    const text = search.value.trim().toLowerCase();
    const has = (...parts) => !text || parts.join(" ").toLowerCase().includes(text);
    const shown = clusters.filter(({ name, value }) => (!region.value || value.region === region.value)
      && (!problems.checked || value.problems.length)
      && has(name, ...value.pools.flatMap((pool) => [pool.name, pool.class, ...pool.shares.map(([who]) => who)]), ...loadedOn(value).flatMap(([, names]) => names)));
    lists.clusters.show(shown);
    const listed = [...deployments, ...adapters].filter(({ name, value }) => (!problems.checked || ["refused", "waiting"].includes(value.state))
      && has(name, ...(value.replicas || value.places).map(([, cluster]) => cluster)));
    const either = (one, other) => URGENCY.indexOf(one.value.state) - URGENCY.indexOf(other.value.state);
    lists.deployments.show(adapters.length ? listed.sort(either) : listed);
    const all = counted(deployments.length, "deployment") + (adapters.length ? " and " + counted(adapters.length, "adapter") : "");
    byId("shown").textContent = shown.length === clusters.length && listed.length === deployments.length + adapters.length ? ""
      : shown.length + " of " + counted(clusters.length, "cluster") + ", " + listed.length + " of " + all;
  };

  const update = () => {
    clusters = ofKind("cluster").map((item) => ({ ...item, height: heightOf(item.value) }))
      .sort((one, other) => (one.value.region === other.value.region ? byName(one, other) : one.value.region < other.value.region ? -1 : 1));
    deployments = ofKind("deployment").map((item) => ({ ...item, height: 74 }))
      .sort((one, other) => URGENCY.indexOf(one.value.state) - URGENCY.indexOf(other.value.state) || byName(one, other));
    adapters = ofKind("adapter").map((item) => ({ ...item, height: item.value.message ? 94 : 74 })).sort(byName);
    const fleet = entries.get("fleet");
    const sum = (name) => deployments.reduce((total, { value }) => total + value[name], 0);
    const waiting = [...deployments, ...adapters].filter(({ value }) => value.state === "waiting").length;
    byId("where").textContent = fleet.where;
    byId("summary").textContent = counted(clusters.length, "cluster") + ", " + counted(deployments.length, "deployment") + ", "
      + (adapters.length ? counted(adapters.length, "adapter") + ", " : "") + sum("placed").toLocaleString("en") + " of " + counted(sum("wanted"), "replica") + " placed, " + sum("ready").toLocaleString("en") + " ready, "
      + fleet.held.toLocaleString("en") + " of " + counted(fleet.nodes, "node") + " held" + (fleet.price ? ", " + fleet.price : "") + ".";
    byId("listed").textContent = adapters.length ? "Deployments and adapters" : "Deployments";
    byId("waiting").textContent = waiting ? waiting + " waiting" : "";
    offerRegions();
    filter();
  };

  const complain = (text) => {
    byId("problem").hidden = !text;
    byId("problem").textContent = text;
    document.querySelector("main").classList.toggle("out-of-date", Boolean(text));
  };

  const record = (news) => {
    happened.unshift(...news.reverse());
    happened.length = Math.min(happened.length, 500);
    lists.changes.show(happened.map((value, at) => ({ key: happened.length - at + "/" + value.at + value.text, height: 53, value })));
  };

  /* Follow. */
  const events = new EventSource("/events");
  events.addEventListener("state", (event) => {
    const data = JSON.parse(event.data);
    entries.clear();
    for (const [key, value] of Object.entries(data.entries)) entries.set(key, value);
    complain(data.problem && "Not up to date: " + data.problem);
    update();
  });
  events.addEventListener("change", (event) => {
    const data = JSON.parse(event.data);
    for (const key of data.gone) entries.delete(key);
    for (const [key, value] of Object.entries(data.set)) entries.set(key, value);
    complain(data.problem && "Not up to date: " + data.problem);
    if (data.happened.length) record(data.happened);
    update();
  });
  events.onerror = () => complain("Not up to date: fleet-scheduler ui does not answer; trying again.");

  /* Panes and keys. */
  const panes = [...document.querySelectorAll("nav button")];
  const pane = (name) => {
    document.body.dataset.pane = name;
    for (const button of panes) button.setAttribute("aria-pressed", String(button.dataset.pane === name));
  };
  pane("clusters");
  for (const button of panes) button.addEventListener("click", () => pane(button.dataset.pane));
  search.addEventListener("input", filter);
  region.addEventListener("change", filter);
  problems.addEventListener("change", filter);
  dialog.addEventListener("close", () => { asking += 1; });
  document.addEventListener("keydown", (event) => {
    if (dialog.open || event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=checkbox]), select")) {
      if (event.key === "Escape" && event.target === search) { search.value = ""; filter(); search.blur(); }
      return;
    }
    if (event.key === "/") { search.focus(); event.preventDefault(); }
    const chosen = panes[Number(event.key) - 1];
    if (chosen) { pane(chosen.dataset.pane); byId(chosen.dataset.pane).focus(); }
  });
  byId("since").textContent = clock(opened);
})();
