// Shows the cards of each scoreboard of the page (utils/scoreboard.py) that two lists choose.
// Without this script all cards are visible, and the lists are not.
for (const board of document.querySelectorAll(".scoreboard:has(.choice)")) {
  const cards = [...board.querySelectorAll(".claim")];
  const [chapter, word] = board.querySelectorAll(".choice select");
  const status = board.querySelector("[role=status]");

  const show = () => {
    for (const card of cards) {
      card.hidden = !(["", card.dataset.chapter].includes(chapter.value)
        && ["", ...card.dataset.words.split("|")].includes(word.value));
    }
    const shown = cards.filter((card) => !card.hidden).length;
    status.textContent = `${shown} of ${cards.length} claims shown`;
  };

  board.querySelector(".choice").hidden = false;
  board.addEventListener("change", show);
  // A link to a card that is not shown: show all of them.
  addEventListener("click", ({ target }) => {
    const card = document.getElementById(target.closest?.("a[href^='#']")?.hash.slice(1));
    if (card?.hidden && board.contains(card)) {
      chapter.value = word.value = "";
      show();
    }
  });
}
