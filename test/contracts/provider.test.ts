import { expect, test } from "bun:test"
import { PROVIDERS } from "../../src/channels"
import { hasContractTest } from "./provider"

test("every provider of the table holds the contract, in a test of its own", () => {
  expect(PROVIDERS.filter((one) => !hasContractTest(one)).map(({ name }) => name)).toEqual([])
})

test("a name stands once for each channel", () => {
  const names = PROVIDERS.map(({ channel, name }) => `${channel} ${name}`)
  expect(new Set(names).size).toBe(names.length)
})
