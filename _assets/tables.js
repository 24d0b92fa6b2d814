// A table that is wider than the page scrolls inside its box, which the keyboard has to reach.
const reach = new ResizeObserver((changes) => {
  for (const { target: box } of changes) box.tabIndex = box.scrollWidth > box.clientWidth ? 0 : -1;
});
document.querySelectorAll(".pst-scrollable-table-container").forEach((box) => reach.observe(box));
