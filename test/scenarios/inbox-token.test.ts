import { describe, expect, test } from "bun:test"
import { join } from "node:path"
import { decodeJwt } from "jose"
import { startBelfry } from "../harness/binary"
import { root } from "../harness/migrations"
import { locate, missing } from "../harness/peers"

const VERIFIER = join(root, "test/inbox/verify-token.mjs")

async function verified(issuer: string, token: string) {
  const cmd = [locate("node") ?? "", VERIFIER, `${issuer}/jwks.json`, issuer, token]
  const child = Bun.spawn({ cmd, stdio: ["ignore", "pipe", "inherit"] })
  const text = await child.stdout.text()
  await child.exited
  return JSON.parse(text)
}

describe.skipIf(missing("node"))("the binary", () => {
  test("makes tokens that a program on Node verifies by the address that stands in them", async () => {
    await using server = await startBelfry()
    const saved = await server.cli("subscribers", "upsert", "user_42", "--json")
    const { id } = JSON.parse(saved.stdout) as { id: string }
    const made = await server.cli("inbox", "token", "--external-id", "user_42", "--quiet")
    expect(made.code).toBe(0)
    const token = made.stdout.trim()
    const { iss = "" } = decodeJwt(token)
    expect(iss).toBe(`${server.url}/v1/projects/${server.project_id}`)
    expect(await verified(iss, token)).toMatchObject({ sub: id, aud: "inbox" })

    const [head = "", body = ""] = token.split(".")
    const forged = `${head}.${body}.${Buffer.alloc(64).toString("base64url")}`
    const code = "ERR_JWS_SIGNATURE_VERIFICATION_FAILED"
    expect(await verified(iss, forged)).toEqual({ code })
    const headers = { authorization: `Bearer ${token}` }
    const elsewhere = await server.request("/v1/subscribers", { headers })
    expect(elsewhere.status).toBe(403)
  })
})
