import { afterAll, expect, test } from "bun:test"
import { openSecrets } from "../../src/core/secrets"
import { BUCKETS } from "../../src/identity/sign-in-buckets"
import { throttles } from "../../src/identity/tables"
import { Throttle } from "../../src/sign-in/throttle"
import { testStore } from "../harness/store"

const { store, folder, [Symbol.asyncDispose]: close } = await testStore()
afterAll(close)
const throttle = new Throttle(store, openSecrets({ data_dir: folder, master_key: null }), throttles)

const tries = async (count: number, subject: (at: number) => string) => {
  let admitted = 0
  for (let at = 0; at < count; at++) {
    const taken = throttle.consume([BUCKETS.sign_in_address, subject(at)])
    admitted += await taken.then(
      () => 1,
      () => 0,
    )
  }
  return admitted
}

test("an address is an IPv4 address, or the network of an IPv6 one", async () => {
  expect(await tries(32, (at) => `2001:db8:1:2::${at.toString(16)}`)).toBe(30)
  expect(await tries(3, (at) => `2001:db8:1:3::${at}`)).toBe(3)
  expect(await tries(32, () => "192.0.2.1")).toBe(30)
  expect(await tries(3, (at) => `192.0.2.${2 + at}`)).toBe(3)
})
