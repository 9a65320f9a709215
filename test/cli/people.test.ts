import { expect, test } from "bun:test"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { generate } from "otplib"
import { belfry, type Ended, freshHome } from "./belfry"
import { box } from "./box"

const PASSWORD = "Correct-Horse-7"
const NEXT = "Proper-Staple-8"
const LAST = "Third-Battery-9"

const read = ({ exit, out, err }: Ended) => {
  if (exit !== 0) throw new Error(`exit ${exit}: ${err}`)
  return JSON.parse(out)
}

const told = ({ exit, err }: Ended) => [exit, JSON.parse(err).error.code]

test("a person sets a box up from elsewhere, and looks after himself", async () => {
  await using server = await box()
  const { url, data_dir, setup_token, ann } = server
  expect(readFileSync(join(data_dir, "setup-token"), "utf8")).toBe(`${setup_token}\n`)
  const words = ["setup", url, "--email", "ann@mailbox.test", "--account-name", "Acme"]
  const setup = [...words, "--password-stdin", "--setup-token"]
  expect(told(await ann([...setup, "belfry_setup_wrong"], PASSWORD))).toEqual([4, "unauthorized"])
  const made = read(await ann([...setup, setup_token], PASSWORD))
  expect(made).toMatchObject({ user: { operator: true }, account: { name: "Acme" } })
  expect(made.api_key.key).toStartWith("svc_live_")
  expect(JSON.stringify(made)).not.toContain("belfry_refresh_")
  expect(told(await ann([...setup, setup_token], PASSWORD))).toEqual([3, "not_found"])

  expect(read(await ann(["me", "get"]))).toMatchObject({ email: "ann@mailbox.test", name: null })
  const changed = read(await ann(["me", "update", "--name", "Ann", "--timezone", "Europe/Vienna"]))
  expect(changed).toMatchObject({ name: "Ann", timezone: "Europe/Vienna" })
  expect(told(await ann(["me", "update", "--timezone", "Mars"]))).toEqual([7, "validation_error"])

  const login = ["login", url, "--email", "ann@mailbox.test", "--password-stdin"]
  const elsewhere = freshHome()
  const there = (line: string[], stdin?: string) =>
    belfry(line, { env: { HOME: elsewhere }, ...(stdin !== undefined && { stdin }) })
  read(await there(login, PASSWORD))
  const sessions = read(await ann(["me", "sessions", "list"]))
  expect(sessions.map(({ current }: { current: boolean }) => current)).toEqual([false, true])
  read(await ann(["me", "sessions", "revoke", sessions[0].id, "--yes"]))
  expect(told(await there(["me", "get"]))).toEqual([4, "unauthorized"])

  read(await there(login, PASSWORD))
  const password = ["me", "password", "--password-stdin"]
  expect(told(await ann(password, `${NEXT}\n${NEXT}`))).toEqual([7, "invalid_current_password"])
  expect((await ann(password, PASSWORD)).exit).toBe(2)
  expect(read(await ann(password, `${PASSWORD}\n${NEXT}\n`))).toEqual({ success: true })
  expect(told(await there(["me", "get"]))).toEqual([4, "unauthorized"])

  const { secret, backup_codes } = read(await ann(["me", "mfa", "enroll"]))
  expect(backup_codes).toHaveLength(10)
  const verified = await ann(["me", "mfa", "verify", await generate({ secret })])
  expect(read(verified)).toEqual({ enabled: true })
  read(await there([...login, "--code", backup_codes[0]], NEXT))
  const off = ["me", "mfa", "disable"]
  expect(told(await ann([...off, backup_codes[0]]))).toEqual([4, "invalid_verification"])
  expect(read(await ann([...off, backup_codes[1]]))).toEqual({ enabled: false })

  expect(read(await there(["password", "forgot", "ann@mailbox.test", "--url", url]))).toEqual({
    success: true,
  })
  const wait = ["mailbox", "wait", "--system", "--to", "ann@mailbox.test", "--data-dir", data_dir]
  const mail = read(await ann([...wait, "--subject", "reset", "--timeout", "30s"]))
  const token = /belfry_reset_[\w-]+/.exec(mail.text)?.[0] ?? ""
  const reset = ["password", "reset", token, "--url", url, "--password-stdin"]
  expect(told(await there(reset, "short"))).toEqual([7, "weak_password"])
  expect(read(await there(reset, LAST))).toEqual({ success: true })
  expect(told(await there(reset, LAST))).toEqual([7, "otp_expired"])
  expect(told(await ann(["me", "get"]))).toEqual([4, "unauthorized"])

  read(await ann(login, LAST))
  const gone = ["me", "delete", "--password-stdin"]
  expect((await ann(gone, LAST)).exit).toBe(2)
  expect(told(await ann([...gone, "--yes"], LAST))).toEqual([5, "conflict"])
})

test("somebody invited signs up, approves a program, and goes again", async () => {
  await using server = await box()
  const { url, data_dir, ann, kim } = server
  const local = ["--data-dir", data_dir]
  const owner = ["admin", "bootstrap", "--email", "ann@mailbox.test", "--password-stdin", ...local]
  read(await ann(owner, PASSWORD))
  read(await ann(["login", url, "--email", "ann@mailbox.test", "--password-stdin"], PASSWORD))
  read(await ann(["members", "invite", "kim@mailbox.test"]))
  const list = ["mailbox", "list", "--system", "--search", "INVITATION", "--since", "1h", ...local]
  let found: { id: string }[] = []
  while (found.length === 0) found = read(await ann(list))
  expect(read(await ann([...list, "--from", "other@mailbox.test"]))).toEqual([])
  const mail = read(await ann(["mailbox", "get", found[0]?.id ?? "", "--system", ...local]))
  const invitation = /belfry_invitation_[\w-]+/.exec(mail.text)?.[0] ?? ""

  const signup = ["signup", url, "--email", "kim@mailbox.test", "--password-stdin"]
  expect(told(await kim(signup, NEXT))).toEqual([4, "forbidden"])
  const joined = read(await kim([...signup, "--invitation", invitation], NEXT))
  expect(joined.accounts).toMatchObject([{ role: "member" }])

  const begin = async (client_name: string) => {
    const response = await fetch(`${url}/v1/session/device`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ client_name }),
    })
    return (await response.json()) as { data: { user_code: string } }
  }
  const [wanted, strange] = [await begin("mine"), await begin("not mine")]
  expect(read(await kim(["me", "approve", wanted.data.user_code]))).toEqual({ approved: true })
  const denied = await kim(["me", "approve", strange.data.user_code, "--deny"])
  expect(read(denied)).toEqual({ approved: false })
  expect(told(await kim(["me", "approve", "BCDF-GHJK"]))).toEqual([3, "not_found"])

  const gone = ["me", "delete", "--password-stdin", "--yes"]
  expect(told(await kim(gone, PASSWORD))).toEqual([7, "invalid_current_password"])
  expect(read(await kim(gone, NEXT))).toMatchObject({ deleted: true })
  expect((await kim(["whoami"])).exit).toBe(4)
})
