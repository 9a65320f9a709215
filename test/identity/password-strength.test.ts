import { expect, test } from "bun:test"
import { lacking } from "../../src/identity/passwords"

test.each([
  ["", ["length", "upper", "lower", "digit", "symbol"]],
  ["password", ["upper", "digit", "symbol"]],
  ["Aa1!", ["length"]],
  ["Correct-Horse-7", []],
  ["Ünï-çodé-٣", []],
  ["Ab1\u{1f600}\u{1f600}\u{1f600}", ["length"]], // a character is one, however long its code
  ["Correct Horse 7", []],
])("%j lacks %j", (password, missing) => {
  expect(lacking(password)).toEqual(missing)
})
