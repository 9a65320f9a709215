import { expect, test } from "bun:test"
import { limitedCountry } from "../../src/sms/limited-country"

const config = (provider: string, ...allowed_countries: string[]) => ({
  ...{ provider, settings: allowed_countries.length > 0 ? { allowed_countries } : {} },
})

test.each([
  ["a country that nobody lists", [config("twilio")], "+43"],
  ["one beside another that is listed", [config("vonage", "+49"), config("twilio")], "+43"],
  ["a listed one", [config("twilio", "+43")], undefined],
  [
    "one that the second configuration lists",
    [config("twilio"), config("vonage", "+4366")],
    undefined,
  ],
  ["a text to log", [config("log"), config("twilio")], undefined],
  ["a text that only the second may take", [config("log", "+49"), config("twilio")], "+43"],
  ["the provider of the instance", [], undefined],
])("%s", (_, configs, prefix) => {
  expect(limitedCountry("+436601234567", configs)).toBe(prefix)
})
