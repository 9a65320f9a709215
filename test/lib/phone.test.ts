import { expect, test } from "bun:test"
import { Problems } from "../../src/core/errors"
import { countryPrefix, isPhone, phoneFrom, readPhone } from "../../src/lib/phone"

const WRONG = [
  ...["", "+", "4366012345678", "004366012345678", "06601234567", "+0436601234567", "+043"],
  ...[
    "+43 660 1234567",
    "+43-660-1234567",
    "+43(0)6601234567",
    "+43.660.1234567",
    "+43/6601234567",
  ],
  ...["+43660123456\n", "\n+43660123456", " +43660123456", "+43660123456 ", "+43660\u00a0123456"],
  ...["+43660123456\0", "+43660123456\u200b", "\u202a+43660123456", "\uff0b43660123456"],
  ...["+４３660123456", "+٤٣660123456", "+43660l23456", "+43660O23456", "+43AAA123456"],
  ...["+123456", "+1234567890123456", `+${"1".repeat(2000)}`, "++43660123456", "+-43660123456"],
  ...["+43660123456+", "+43660123456x12", "+43660123456;ext=12", "tel:+43660123456"],
  ...["sms:+43660123456", "whatsapp:+43660123456", "+4.3660123456e11", "+43660123456,+43660123457"],
  ...["Anna", "a@b.test", "null"],
]

test("a number that is not E.164 is refused, in each of 42 wrong forms", () => {
  expect(WRONG.length).toBe(42)
  expect(WRONG.filter(isPhone)).toEqual([])
  const problems = new Problems()
  for (const [at, number] of WRONG.entries())
    expect(readPhone(number, `${at}`, problems)).toBeUndefined()
  expect(new Set(problems.list.map(({ code }) => code))).toEqual(new Set(["invalid_phone_number"]))
})

test.each(["+1234567", "+436601234567", "+123456789012345"])("%s is a number", (number) => {
  expect(readPhone(number, "to", new Problems())).toBe(number)
})

test.each([
  ["436601234567", "+436601234567"],
  ["+436601234567", "+436601234567"],
  ["00436601234567", "+436601234567"],
  [" 14155550110 ", "+14155550110"],
  ["+43 660 123-4567", "+436601234567"],
  ["+43(0)6601234567", undefined],
  ["12345", undefined],
  ["06601234567", undefined],
  ["Belfry", undefined],
])("a service that writes %p means %p", (text, number) => {
  expect(phoneFrom(text)).toBe(number)
})

test.each([
  ["+14155550110", "+1"],
  ["+79161234567", "+7"],
  ["+201001234567", "+20"],
  ["+436601234567", "+43"],
  ["+4915112345678", "+49"],
  ["+31612345678", "+31"],
  ["+6591234567", "+65"],
  ["+8613800138000", "+86"],
  ["+919876543210", "+91"],
  ["+989121234567", "+98"],
  ["+212612345678", "+212"],
  ["+353851234567", "+353"],
  ["+385911234567", "+385"],
  ["+4201234567890", "+420"],
  ["+5999123456", "+599"],
  ["+85291234567", "+852"],
  ["+971501234567", "+971"],
  ["+88213123456", "+882"],
])("the country code of %s is %s", (number, prefix) => {
  expect(countryPrefix(number)).toBe(prefix)
})
