import { expect, test } from "bun:test"
import {
  addressesOf,
  agoText,
  namedAddress,
  programsText,
  recipientsOf,
  sizeText,
} from "../../src/console/mail/describe"

test("sizes have two digits and a unit", () => {
  const said = [0, 999, 1000, 1250, 9949, 102_400, 999_600, 5_000_000_000].map(sizeText)
  expect(said).toEqual(["0 B", "999 B", "1.0 KB", "1.3 KB", "9.9 KB", "102 KB", "1.0 MB", "5.0 GB"])
})

test("ages are short, and old things have their date", () => {
  const now = Date.parse("2026-11-23T12:00:00Z")
  const ages = ["2026-11-23T11:59:30Z", "2026-11-23T11:01:00Z", "2026-11-22T13:00:00Z"]
  expect(ages.map((at) => agoText(at, now))).toEqual(["now", "59 min", "23 h"])
  expect(agoText("2026-11-01T08:00:00Z", now)).toBe("2026-11-01")
  expect(agoText("2026-11-23T12:00:05Z", now)).toBe("now")
  expect(agoText("soon", now)).toBe("soon")
})

test("an address has the name of its field, and of no other address", () => {
  const named = (field?: string | string[]) => namedAddress("hello@acme.test", field)
  expect(named("Acme <Hello@acme.test>")).toBe("Acme <Hello@acme.test>")
  for (const other of [undefined, [], "eve@x.test", "Acme <eve@x.test>", "x".repeat(400)])
    expect(named(other)).toBe("hello@acme.test")
  expect(named("A <a@x.test>, Acme <hello@acme.test>")).toBe("hello@acme.test")
})

test("a field is split into its addresses, and a quoted comma separates none", () => {
  expect(addressesOf('a@x.test, "Doe, \\"J\\", Jo" <b@x.test>,c@x.test, ')).toEqual([
    "a@x.test",
    '"Doe, \\"J\\", Jo" <b@x.test>',
    "c@x.test",
  ])
  expect(addressesOf(["a@x.test", "b@x.test"])).toEqual(["a@x.test", "b@x.test"])
  expect(addressesOf('"open, a@x.test')).toEqual(['"open, a@x.test'])
  for (const nothing of [undefined, "", " , ,"]) expect(addressesOf(nothing)).toEqual([])
})

test("a field with the recipient among others names all of them", () => {
  const all = ["Ann <Ann@x.test>", "bob@x.test"]
  expect(recipientsOf("ann@x.test", all.join(", "))).toEqual(all)
  expect(recipientsOf("bob@x.test", all.join(", "))).toEqual(all)
  for (const field of ["Ann <ann@x.test>", all.join(", "), undefined])
    expect(recipientsOf("eve@x.test", field)).toEqual(["eve@x.test"])
})

test("the systems of a program stand in one bracket", () => {
  const names = ["Gmail (webmail)", "Outlook.com", "Gmail (iOS)", "Outlook (Windows)"]
  expect(programsText(names)).toBe("Gmail (webmail, iOS), Outlook.com, Outlook (Windows)")
  expect(programsText([])).toBe("")
})
