"use strict";
(() => {
  const told = JSON.parse(document.getElementById("told").textContent);
  const docs = document.body.dataset.docs;
  const choice = document.getElementById("deployment");
  const hover = document.getElementById("hover");
  const cards = [...document.querySelectorAll(".cluster")];
  const buttons = [...document.querySelectorAll("aside button")];

  const verdictOf = (deployment, cluster) => {
    const found = (told.verdicts[deployment] || {})[cluster];
    return found === undefined ? null : told.texts[found];
  };

  const written = ([code, line]) => {
    const part = document.createElement("span");
    if (!code) { part.className = "fits"; part.textContent = line; return part; }
    const link = document.createElement("a");
    link.href = docs + code.toLowerCase();
    link.textContent = code;
    part.append(link, line ? ": " + line : "");
    return part;
  };

  const filter = (name) => {
    choice.value = name;
    for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.name === name));
    let shown = 0;
    for (const card of cards) {
      const verdict = name ? verdictOf(name, card.dataset.name) : null;
      const holds = !name || card.dataset.holders.split(" ").includes(name);
      const place = card.querySelector(".verdict");
      place.replaceChildren(...(verdict ? [written(verdict)] : []));
      const concerned = holds || (verdict !== null && !verdict[0]);
      card.classList.toggle("dim", !concerned);
      shown += concerned ? 1 : 0;
      for (const share of card.querySelectorAll("i[data-who]")) share.classList.toggle("dim", Boolean(name) && share.dataset.who !== name);
    }
    document.getElementById("shown").textContent = name ? shown + " of " + cards.length + " clusters host it or have room" : cards.length + " clusters";
    try { history.replaceState(null, "", name ? "#" + encodeURIComponent(name) : location.pathname); } catch { /* A file may not have a history. */ }
  };

  const look = (card) => {
    const list = document.createElement("ul");
    for (const name of Object.keys(told.verdicts)) {
      if (choice.value && choice.value !== name) continue;
      const verdict = verdictOf(name, card.dataset.name);
      if (!verdict) continue;
      const item = document.createElement("li");
      item.append(name + ": ", written(verdict));
      list.append(item);
    }
    const title = document.createElement("strong");
    title.textContent = card.dataset.name;
    hover.replaceChildren(title, list);
  };

  for (const kind of ["mouseover", "focusin"]) {
    document.addEventListener(kind, (event) => {
      const card = event.target.closest && event.target.closest(".cluster");
      if (card) look(card);
    });
  }
  choice.addEventListener("change", () => filter(choice.value));
  for (const button of buttons) button.addEventListener("click", () => filter(choice.value === button.dataset.name ? "" : button.dataset.name));
  const wanted = decodeURIComponent(location.hash.slice(1));
  filter([...choice.options].some((option) => option.value === wanted) ? wanted : "");
})();
