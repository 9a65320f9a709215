import { expect, test } from "bun:test"
import { MailPages, withNeighbours } from "../../src/console/mail/mail-pages"

const rowsOf = (from: number, count: number) =>
  Array.from({ length: count }, (_, at) => ({ id: `mail-${from + at}`, read: false }))

function filled(total = 250) {
  const pages = new MailPages<{ id: string; read: boolean }>()
  pages.put(1, { rows: rowsOf(0, 100), total })
  return pages
}

test("pages are asked for once, in the order in which somebody looks", () => {
  const pages = filled()
  expect(pages.claimMissing(0, 30)).toEqual([])
  expect(pages.claimMissing(190, 260)).toEqual([2, 3])
  expect(pages.claimMissing(190, 260)).toEqual([])
  pages.put(3, { rows: rowsOf(200, 50), total: 250 })
  expect(pages.at(249)?.id).toBe("mail-249")
  expect(pages.at(150)).toBeUndefined()
})

test("a page that failed is asked for again", () => {
  const pages = filled()
  expect(pages.claimMissing(100, 101)).toEqual([2])
  pages.release(2)
  expect(pages.claimMissing(100, 101)).toEqual([2])
})

test("new rows push the known ones down", () => {
  const pages = filled()
  const fresh = [
    { id: "new-1", read: false },
    { id: "new-0", read: false },
  ]
  expect(pages.merge({ rows: [...fresh, ...rowsOf(0, 98)], total: 252 })).toBe(2)
  expect([pages.at(0)?.id, pages.at(2)?.id, pages.at(101)?.id]).toEqual([
    "new-1",
    "mail-0",
    "mail-99",
  ])
  expect(pages.count).toBe(252)
})

test("a list that changed in another way begins anew", () => {
  const pages = filled()
  pages.put(2, { rows: rowsOf(100, 100), total: 250 })
  expect(pages.merge({ rows: rowsOf(1, 100), total: 249 })).toBeUndefined()
  expect([pages.at(0)?.id, pages.at(99)?.id, pages.at(100)]).toEqual([
    "mail-1",
    "mail-100",
    undefined,
  ])
  expect(pages.merge({ rows: [], total: 0 })).toBeUndefined()
  expect(pages.count).toBe(0)
})

test("a row changes in its place, and a removed one leaves no gap", () => {
  const pages = filled()
  pages.change("mail-5", { read: true })
  expect(pages.at(5)).toEqual({ id: "mail-5", read: true })
  pages.remove("mail-5")
  expect([pages.at(5)?.id, pages.placeOf("mail-5"), pages.total]).toEqual([
    "mail-6",
    undefined,
    249,
  ])
  pages.remove("unknown")
  expect(pages.total).toBe(249)
})

test("no more rows are shown than the API reads by page", () => {
  const pages = filled(100_000)
  expect([pages.count, pages.total]).toEqual([10_000, 100_000])
  expect(pages.claimMissing(9990, 20_000)).toEqual([100])
})

test("rows beside those in view are loaded as soon as somebody scrolls", () => {
  expect(withNeighbours({ from: 0, to: 20 })).toEqual([0, 20])
  expect(withNeighbours({ from: 20, to: 40 })).toEqual([0, 90])
  expect(withNeighbours({ from: 900, to: 920 })).toEqual([850, 970])
})
