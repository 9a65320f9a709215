import { expect, test } from "bun:test"
import { certificateFault } from "../../cli/lib/post"

test.each([
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "self-signed certificate"],
  ["CERT_HAS_EXPIRED", "expired"],
  ["A_NEW_CODE", "A_NEW_CODE"],
])("the code %s is said as: %s", (code, words) => {
  expect(certificateFault(code)).toBe(words)
})
