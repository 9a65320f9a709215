import { expect, test } from "bun:test"
import { LEAST_POLICY, lacking } from "../../src/sign-in/passwords"

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

const strict = { ...LEAST_POLICY, min_length: 12, refuses_common: true }

test.each([
  ["P@ssw0rd2024!", ["common"]],
  ["1234-Qwerty-5678", ["common"]],
  ["$Umm3r-2026-!!", ["common"]],
  ["Password7!", ["length", "common"]],
  ["Password-Garden-7", []],
  ["Quiet-River-42", []],
])("of an owner that asks for more, %j lacks %j", (password, missing) => {
  expect(lacking(password, strict)).toEqual(missing)
})
