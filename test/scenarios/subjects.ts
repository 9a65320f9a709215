import { screenLines } from "../../cli/tui/monitor"
import { applyNews } from "../../cli/tui/store"
import { fact, monitorWith } from "../cli/tui/rows"

/** Texts that terminals measure in different ways, and some that try to leave their place. */
const PIECES = [
  ..."abc XYZ 019 .,:;-_<>|~",
  ..."äöüßéñøŁžЖяΩλ",
  ..."漢字ビジネス한글ﾊﾝｶｸ",
  ...["e\u0301", "a\u0308\u0323", "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A", "\u0301", "\u20dd", "๑ำ", "กิ์", "नमस्ते", "ক্ষ", "தமிழ்"],
  ...["👨‍👩‍👧‍👦", "👩🏽‍🚀", "🏳️‍🌈", "🇦🇹", "🇦", "❤️", "☎️", "1️⃣", "🫱🏻‍🫲🏿", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🎉", "☺", "⚠"],
  ...[
    "שלום",
    "مرحبا",
    "\u202eright to left\u202c",
    "\u2066x\u2069",
    "\u200f",
    "\u200d",
    "\u200b",
    "\ufeff",
    "\u00ad",
  ],
  ...[
    "\t",
    "\t\t",
    "\r",
    "\n",
    "\u001b[31m",
    "\u001b[2J",
    "\u001b]0;title\u0007",
    "\u009b5A",
    "\u0007",
    "\b\b\b",
  ],
  ...[
    "\u1100\u1161\u11a8",
    "\u115f",
    "\u3000",
    "\uffa0",
    "\ue000",
    "\u{10ffff}",
    "\u{e0001}",
    "\ufffd",
    "﷽",
    "⸻",
    "𒐫",
  ],
]

/** The same numbers in every run and on every terminal (a linear congruential generator). */
function* numbers(seed: number) {
  for (let state = seed + 1; ; ) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    yield state >> 8
  }
}

function randomText(seed: number): string {
  const source = numbers(seed)
  const next = (below: number) => (source.next().value as number) % below
  const length = 1 + next(40)
  return Array.from({ length }, () => PIECES[next(PIECES.length)]).join("")
}

/** Rows of a list on a screen of so many lines: its frame, tabs, head and info line take five. */
export const rowsOnScreen = (lines: number): number => lines - 5

/** One page of random messages as the monitor shows it: its title names the page; odd pages have colours. */
export function pageLines(page: number, columns: number, lines: number): string[] {
  const rows = rowsOnScreen(lines)
  const facts = Array.from({ length: rows }, (_, row) => {
    const seed = page * rows + row
    return fact(seed, "delivered", {
      subject: randomText(seed),
      to: `${randomText(seed + 500_000)}@x.test`,
    })
  })
  const state = applyNews(monitorWith(0, columns, lines), { is: "facts", facts }).state
  return screenLines({ ...state, title: `page ${page}` }, page % 2 === 1)
}
