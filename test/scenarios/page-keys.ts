import type { BrowserPage } from "../harness/browser"

/** More presses than any page has controls before the one that is looked for. */
const MOST_PRESSES = 120

/** Presses Tab until a control of this name has the focus, as a person without a mouse does. */
export async function tabTo(page: BrowserPage, name: string): Promise<void> {
  const passed: string[] = []
  for (let presses = 0; presses < MOST_PRESSES; presses++) {
    await page.press("Tab")
    const found = await page.read<string>(NAME_IN_FOCUS)
    if (found === name) return
    passed.push(found)
  }
  throw new Error(`Tab never comes to "${name}", but to: ${passed.join(" | ")}`)
}

/** Types in place of what the field in focus holds. */
export async function typeOver(page: BrowserPage, text: string): Promise<void> {
  await page.tab.keyboard.down("Control")
  await page.press("a")
  await page.tab.keyboard.up("Control")
  await page.tab.keyboard.type(text)
}

const NAME_IN_FOCUS = `(() => {
  const one = document.activeElement
  if (one === document.body) return "the page"
  const name = one.ariaLabel ?? one.labels?.[0]?.innerText ?? one.innerText ?? ""
  return name.trim().replace(/\\s+/g, " ").slice(0, 100)
})()`

export const FOCUS = "document.activeElement"
