import type { BrowserPage } from "../harness/browser"

/** In pixels a second: a person who looks for a mail turns the wheel about so fast. */
const SPEED = 2_400
const HITCH_MS = 50
const LIST = `document.querySelector("[role=listbox]")`

export interface Scrolled {
  /** Of the frames: those that came more than 50 ms after the one before, in percent. */
  hitches: number
  /** Of the rows in view over all frames: those that were not loaded or not drawn, in percent. */
  missing: number
}

/**
 * Scrolls down the list of `/mailbox`, which was just opened, for so many seconds. It begins at a share of the
 * list's length (0 is the top), as after a drag of the scroll bar.
 */
export async function scrollMails(
  page: BrowserPage,
  { from, seconds }: { from: number; seconds: number },
): Promise<Scrolled> {
  await page.until("document.querySelector('[role=option] .subject')")
  await page.read(`void (${LIST}.scrollTop = ${from} * ${LIST}.scrollHeight)`)
  await page.until(`(${SEEN})(${LIST}).missing === 0`)
  await page.read(`void (${SCROLL})(${SEEN}, ${seconds * 1000})`)
  await Bun.sleep(seconds * 1000)
  return page.until<Scrolled>("globalThis.scrolled")
}

/** How many rows are in view, and how many of them tell no subject. */
const SEEN = `(box) => {
  const row = box.querySelector("[role=option]").offsetHeight
  const first = Math.floor(box.scrollTop / row)
  const last = Math.min(Math.ceil((box.scrollTop + box.clientHeight) / row), Math.round(box.scrollHeight / row))
  const told = [...box.querySelectorAll("[role=option]")].filter((one) => {
    const at = Number(one.getAttribute("aria-posinset")) - 1
    return at >= first && at < last && one.querySelector(".subject")
  })
  return { rows: last - first, missing: last - first - told.length }
}`

/** What a frame shows is read at the begin of the next one, before that scrolls on. */
const SCROLL = `(seen, milliseconds) => {
  const box = ${LIST}
  const begin = box.scrollTop
  let begun, before
  let frames = 0, hitches = 0, rows = 0, missing = 0
  globalThis.scrolled = undefined
  const step = (now) => {
    begun ??= now
    if (before !== undefined) {
      frames++
      if (now - before > ${HITCH_MS}) hitches++
      const shown = seen(box)
      rows += shown.rows
      missing += shown.missing
    }
    before = now
    box.scrollTop = begin + ((now - begun) * ${SPEED}) / 1000
    if (now - begun < milliseconds) requestAnimationFrame(step)
    else globalThis.scrolled = { hitches: (100 * hitches) / frames, missing: (100 * missing) / rows }
  }
  requestAnimationFrame(step)
}`
