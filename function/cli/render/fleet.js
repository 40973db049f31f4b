"use strict";
(() => {
  const told = JSON.parse(document.getElementById("told").textContent);
  const docs = document.body.dataset.docs;
  const control = (id) => document.getElementById(id);
  const [search, choice, region, kind, reason, sort, problems] =
    ["search", "deployment", "region", "class", "reason", "sort", "problems"].map(control);
  const hover = control("hover");
  const cards = [...document.querySelectorAll(".cluster")].map((element, at) => ({
    element, at, ...element.dataset,
    free: Number(element.dataset.free), nodes: Number(element.dataset.nodes),
    problems: element.dataset.problems.split(" ").filter(Boolean),
    holders: element.dataset.holders.split(" "),
    classes: [...element.querySelectorAll(".pool")].map((pool) => pool.dataset.class),
    text: (element.dataset.name + " " + [...element.querySelectorAll(".name span:first-child")].map((name) => name.textContent).join(" ")).toLowerCase(),
    verdict: element.querySelector(".verdict"),
    shares: [...element.querySelectorAll("i[data-who]")],
  }));
  const byName = new Map(cards.map((card) => [card.name, card]));
  const cells = new Map([...document.querySelectorAll(".cell[data-at]")].map((cell) => [cell.dataset.at, cell]));
  const buttons = [...document.querySelectorAll("aside button")];
  const sections = [...document.querySelectorAll("main section")];

  const verdictOf = (deployment, card) => {
    const found = (told.verdicts[deployment] || [])[card.at];
    return found === undefined || found < 0 ? null : told.texts[found];
  };

  const written = ([code, line]) => {
    const part = document.createElement("span");
    if (!code) { part.className = "fits"; part.textContent = line; return part; }
    const link = document.createElement(docs ? "a" : "b");
    if (docs) link.href = docs + code.toLowerCase();
    link.textContent = code;
    part.append(link, line ? ": " + line : "");
    return part;
  };

  /* What a card can be filtered by: the verdict on the deployment that is chosen, else its own problems. */
  const FITS = "one more replica fits";
  const reasonsOf = (card) => {
    if (!choice.value) return card.problems;
    const verdict = verdictOf(choice.value, card);
    return verdict ? [verdict[0] || FITS] : [];
  };

  const offerReasons = () => {
    const counts = new Map();
    for (const card of cards) for (const code of reasonsOf(card)) counts.set(code, (counts.get(code) || 0) + 1);
    const before = reason.value;
    const option = (value, text) => Object.assign(document.createElement("option"), { value, textContent: text });
    const listed = [...counts].sort((one, other) => other[1] - one[1] || (one[0] < other[0] ? -1 : 1));
    reason.replaceChildren(option("", "all"), ...listed.map(([code, count]) => option(code, code + " (" + count + ")")));
    reason.value = counts.has(before) ? before : "";
  };

  const ORDERS = {
    name: (one, other) => one.at - other.at,
    free: (one, other) => other.free - one.free || one.at - other.at,
    full: (one, other) => (one.free / (one.nodes || 1)) - (other.free / (other.nodes || 1)) || one.at - other.at,
    problems: (one, other) => other.problems.length - one.problems.length || one.at - other.at,
  };

  const order = () => {
    const grids = new Map(sections.map((section) => [section, []]));
    for (const card of [...cards].sort(ORDERS[sort.value])) grids.get(card.element.closest("section")).push(card.element);
    for (const [section, elements] of grids) section.querySelector(".grid").replaceChildren(...elements);
  };

  const matches = (card, words) =>
    words.every((word) => card.text.includes(word)) &&
    (!region.value || card.region === region.value) &&
    (!kind.value || card.classes.includes(kind.value)) &&
    (!reason.value || reasonsOf(card).includes(reason.value)) &&
    (!problems.checked || card.problems.length > 0);

  const show = () => {
    const name = choice.value;
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.name === name));
    let visible = 0, concerned = 0;
    for (const card of cards) {
      const verdict = name ? verdictOf(name, card) : null;
      const hosts = !name || card.holders.includes(name) || (verdict !== null && !verdict[0]);
      const matched = matches(card, words);
      card.verdict.replaceChildren(...(verdict ? [written(verdict)] : []));
      card.element.classList.toggle("dim", !hosts);
      card.element.hidden = !matched;
      const cell = cells.get(card.name);
      if (cell) cell.classList.toggle("out", !matched || !hosts);
      for (const share of card.shares) share.classList.toggle("dim", Boolean(name) && share.dataset.who !== name);
      visible += matched ? 1 : 0;
      concerned += matched && hosts ? 1 : 0;
    }
    for (const section of sections) section.hidden = !section.querySelector(".cluster:not([hidden])");
    control("none").hidden = visible > 0 || cards.length === 0;
    const grouped = (count) => count.toLocaleString("en");
    const many = (count) => grouped(count) + (count === 1 ? " cluster" : " clusters");
    const some = visible === cards.length ? many(cards.length) : grouped(visible) + " of " + many(cards.length);
    control("shown").textContent = name ? grouped(concerned) + " of " + many(visible) + (concerned === 1 ? " hosts it or has room" : " host it or have room") : some;
    try { history.replaceState(null, "", name ? "#" + encodeURIComponent(name) : location.pathname); } catch { /* A file may not have a history. */ }
  };

  const choose = (name) => { choice.value = name; offerReasons(); show(); };

  const reset = () => {
    for (const field of [search, region, kind]) field.value = "";
    problems.checked = false;
    sort.value = "name";
    order();
    choose("");
  };

  const look = (card) => {
    const list = document.createElement("ul");
    for (const name of Object.keys(told.verdicts)) {
      if (choice.value && choice.value !== name) continue;
      const verdict = verdictOf(name, card);
      if (!verdict) continue;
      const item = document.createElement("li");
      item.append(name + ": ", written(verdict));
      list.append(item);
    }
    const title = document.createElement("strong");
    title.textContent = card.name;
    hover.replaceChildren(title, list);
  };

  for (const event of ["mouseover", "focusin"]) {
    document.addEventListener(event, ({ target }) => {
      const element = target.closest && target.closest(".cluster, .cell[data-at]");
      if (element) look(byName.get(element.dataset.name || element.dataset.at));
    });
  }
  document.addEventListener("click", ({ target }) => {
    const cell = target.closest(".cell[data-at]");
    if (cell) {
      const { element } = byName.get(cell.dataset.at);
      if (element.hidden) reset();
      element.scrollIntoView({ block: "center" });
      element.focus();
    }
    const total = target.closest("td button");
    if (total) {
      region.value = total.dataset.region;
      kind.value = total.dataset.class;
      show();
    }
  });
  choice.addEventListener("change", () => choose(choice.value));
  for (const field of [region, kind, reason, problems]) field.addEventListener("change", show);
  search.addEventListener("input", show);
  sort.addEventListener("change", order);
  control("reset").addEventListener("click", reset);
  control("none").querySelector("button").addEventListener("click", reset);
  for (const button of buttons) button.addEventListener("click", () => choose(choice.value === button.dataset.name ? "" : button.dataset.name));
  const wanted = decodeURIComponent(location.hash.slice(1));
  choose([...choice.options].some((option) => option.value === wanted) ? wanted : "");
})();
