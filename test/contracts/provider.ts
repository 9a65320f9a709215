import { describe, expect, test } from "bun:test"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { OptionalKind } from "@sinclair/typebox"
import { PROVIDERS } from "../../src/channels"
import { Problems } from "../../src/core/errors"
import { openSecrets } from "../../src/core/secrets"
import {
  masked,
  openCredentials,
  readCredentials,
  sealCredentials,
} from "../../src/providers/credentials"
import type { ProviderChannel, ProviderDescriptor } from "../../src/providers/provider"
import {
  type Outcome,
  type OutgoingMessage,
  type Provider,
  ProviderError,
} from "../../src/providers/provider"
import { root } from "../harness/migrations"
import { quietLog } from "../harness/quiet"

/** A provider under test, and a server behind it. */
export interface ProviderCase extends AsyncDisposable {
  /** Reach the server, and are right. */
  credentials: Record<string, unknown>
  /** As the channel gives it. */
  context: unknown
  /** Messages to which the server says yes, not now, and never. */
  messages: Record<"accepted" | "deferred" | "refused", OutgoingMessage>
  /** What an accepted message is. */
  success: "sent" | "delivered"
  /** Its check cannot log in, because only a message shows whether the credentials are right. */
  has_no_login?: true
  /** Each recipient's server is its own: that one is away says nothing of the provider, and its check asks none. */
  each_has_own_server?: true
  /** The server goes away. Absent where there is none. */
  leave?(): unknown
}

export const OPENING = { settings: {}, callbackUrl: () => undefined }

const LONG = "a wrong secret of some length"

/**
 * What every provider of any channel promises. The test of each provider calls this once, with a real
 * server on the loopback. How long a provider waits for a silent server is in its own tests.
 */
export function providerContract(
  descriptor: ProviderDescriptor,
  open: () => Promise<ProviderCase>,
): void {
  const { name, channel, credentials: fields } = descriptor
  const logged = quietLog()
  const secretsOf = (access: Record<string, unknown>) =>
    Object.entries(access).flatMap(([field, value]) =>
      fields[field]?.secret ? [String(value)] : [],
    )

  /** Sends over an opened provider; the secrets may show nowhere. */
  async function attempt(
    it: ProviderCase,
    message: OutgoingMessage,
    access: Record<string, unknown> = it.credentials,
  ): Promise<Outcome> {
    const provider = descriptor.open(access, it.context, OPENING)
    try {
      const outcome = await provider.send(message)
      const shown = JSON.stringify(outcome) + logged().join()
      expect(secretsOf(access).filter((secret) => shown.includes(secret))).toEqual([])
      return outcome
    } finally {
      await provider.close()
    }
  }

  describe(`the provider ${name}`, () => {
    test("names itself, its fields and what they are", () => {
      expect(name).toMatch(/^[a-z][a-z0-9-]{1,30}$/)
      for (const [field, { about, schema }] of Object.entries(fields)) {
        expect(field).toMatch(/^[a-z][a-z0-9_]*$/)
        expect([about.length > 0, schema.type !== undefined || schema.anyOf !== undefined]).toEqual(
          [true, true],
        )
      }
      const with_secret = Object.values(fields).filter(({ is_public }) => is_public)
      expect(with_secret.filter(({ secret }) => secret)).toEqual([])
    })

    test("takes the right credentials, and says which field is missing or wrong", async () => {
      await using it = await open()
      const read = (given: object) => {
        const problems = new Problems()
        const kept = readCredentials(descriptor, given, problems)
        const found: string[] = []
        try {
          problems.throwIfAny()
        } catch (error) {
          const { details } = error as { details?: { fields?: Record<string, unknown> } }
          found.push(JSON.stringify(details))
        }
        return { kept, found: found.join() }
      }
      const good = read({ ...it.credentials, unknown_field: "x" })
      expect(good.found).toBe("")
      expect(good.kept).toEqual(it.credentials)
      for (const [field, { schema, fallback }] of Object.entries(fields)) {
        const { [field]: _, ...others } = it.credentials
        const is_optional = OptionalKind in schema || fallback !== undefined
        if (!is_optional) expect(read(others).found).toContain(`credentials.${field}`)
        const wrong = schema.type === "object" ? "a text" : { not: "this" }
        expect(read({ ...it.credentials, [field]: wrong }).found).toContain(`credentials.${field}`)
      }
    })

    test("seals its credentials, and shows no secret of them", async () => {
      await using it = await open()
      const secrets = openSecrets({ data_dir: "", master_key: Buffer.alloc(32).toString("base64") })
      const sealed = sealCredentials(secrets, "config-1", it.credentials)
      const row = { id: "config-1", credentials: sealed }
      expect(openCredentials(secrets, row)).toEqual(it.credentials)
      const shown = JSON.stringify(masked(descriptor, it.credentials))
      for (const secret of secretsOf(it.credentials)) {
        expect([sealed.includes(secret), shown.includes(secret)]).toEqual([false, false])
      }
    })

    test("delivers a message, and says who took it", async () => {
      await using it = await open()
      const { accepted } = it.messages
      expect(await attempt(it, accepted)).toMatchObject({
        address: accepted.to[0] ?? "",
        status: it.success,
        provider: name,
        reason: null,
        others: [],
      })
    })

    test.each([
      ["a temporary refusal is tried again", "deferred", ["retry"]],
      ["a permanent refusal is final", "refused", ["bounced", "failed"]],
    ] as const)("%s, with the server's words", async (_, which, statuses) => {
      await using it = await open()
      const { status, reason, schedule } = await attempt(it, it.messages[which])
      expect(statuses as readonly string[]).toContain(status)
      expect(reason).toBeTruthy()
      if (status === "retry") expect(schedule(1, 0)).toBeGreaterThan(0)
    })

    test("tries again where no server answers, and calls it no fault of the message", async () => {
      await using it = await open()
      if (!it.leave) return expect(fields).toEqual({})
      await it.leave()
      const outcome = await attempt(it, it.messages.accepted)
      const fault = it.each_has_own_server ? undefined : "connection"
      expect([outcome.status, outcome.fault]).toEqual(["retry", fault])
      if (it.each_has_own_server) return
      const provider = descriptor.open(it.credentials, it.context, OPENING)
      if (provider.check) expect(await troubleOf(provider)).toMatchObject({ fault: "connection" })
      await provider.close()
    })

    test("tells a refused login from a refused message, without the secret", async () => {
      await using it = await open()
      const secret = Object.keys(it.credentials).findLast((field) => fields[field]?.secret)
      if (secret === undefined)
        return expect(Object.values(fields).some((one) => one.secret)).toBe(false)
      const wrong = { ...it.credentials, [secret]: LONG }
      expect(await attempt(it, it.messages.accepted, wrong)).toMatchObject({
        fault: "authentication",
      })
      const provider = descriptor.open(wrong, it.context, OPENING)
      const trouble = await troubleOf(provider)
      if (it.has_no_login) return expect(trouble).toBeUndefined()
      expect([trouble?.fault, trouble?.message.includes(LONG)]).toEqual(["authentication", false])
      await provider.close()
    })

    test("logs in for a check, and closes", async () => {
      await using it = await open()
      const provider = descriptor.open(it.credentials, it.context, OPENING)
      if (provider.check) expect(await provider.check()).toBeString()
      await provider.close()
    })

    const is_offered = PROVIDERS.some((one) => one.name === name && one.channel === channel)
    test.if(is_offered)("is in the guide, with every field", () => {
      const guide = readFileSync(join(root, "docs/providers.md"), "utf8")
      const [row = ""] = guide.split("\n").filter((line) => line.startsWith(`| \`${name}\``))
      expect(Object.keys(fields).filter((field) => !row.includes(`\`${field}\``))).toEqual([])
      expect(row).not.toBe("")
    })
  })
}

async function troubleOf(provider: Provider): Promise<ProviderError | undefined> {
  try {
    await provider.check?.()
    return undefined
  } catch (error) {
    if (error instanceof ProviderError) return error
    throw error
  }
}

const FOLDERS: Record<ProviderChannel, string> = { email: "emails", push: "push", sms: "sms" }

/** Whether the provider has a test that holds this contract. */
export function hasContractTest({ name, channel }: ProviderDescriptor): boolean {
  const path = join(root, "test", FOLDERS[channel], "providers", `${name}.test.ts`)
  return existsSync(path) && readFileSync(path, "utf8").includes("providerContract(")
}
