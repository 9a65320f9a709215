import { expect, test } from "bun:test"
import { readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { filesIn } from "../harness/at-rest"
import { box } from "./box"

// Not that of the API's examples, which stand in the code that the runtime caches in the home.
const PASSWORD = "Honest-Barn-41\n"

const read = ({ exit, out, err }: { exit: number; out: string; err: string }) => {
  if (exit !== 0) throw new Error(`exit ${exit}: ${err}`)
  return JSON.parse(out)
}

const told = ({ exit, err }: { exit: number; err: string }) => [exit, JSON.parse(err).error.code]

test("a box from its set-up to the plan's limit, by the command line alone", async () => {
  await using server = await box()
  const { url, data_dir, ann, kim } = server
  const local = ["--data-dir", data_dir]

  const owner = ["admin", "bootstrap", "--email", "ann@mailbox.test", "--password-stdin", ...local]
  const made = read(await ann(owner, PASSWORD))
  expect(made).toMatchObject({ user: { email: "ann@mailbox.test", operator: true } })
  expect(made.session).toBeUndefined()
  expect(told(await ann(owner, PASSWORD))).toEqual([3, "not_found"])

  const login = ["login", url, "--email", "ann@mailbox.test", "--password-stdin"]
  expect(told(await ann(login, "Wrong-Horse-7\n"))).toEqual([4, "unauthorized"])
  const entered = await ann(login, PASSWORD)
  expect(read(entered)).toMatchObject({ url, accounts: [{ role: "owner" }] })
  expect(entered.out).not.toContain("token")
  expect(read(await ann(["whoami"]))).toMatchObject({ kind: "user" })

  read(await ann(["members", "invite", "kim@mailbox.test", "--role", "admin"]))
  const wait = ["mailbox", "wait", "--system", "--to", "kim@mailbox.test", ...local]
  const mail = read(await ann([...wait, "--timeout", "30s"]))
  const token = /\/invitation\/(\S+)/.exec(mail.text)?.[1] ?? ""
  const accept = ["invitations", "accept", token, "--url", url, "--name", "Kim"]
  const joined = read(await kim([...accept, "--password-stdin"], "Proper-Staple-8\n"))
  expect(joined).toMatchObject({
    user: { email: "kim@mailbox.test" },
    accounts: [{ role: "admin" }],
  })
  expect(told(await ann(["mailbox", "get", mail.id]))).toEqual([3, "not_found"])

  const project = read(await kim(["projects", "create", "--name", "Shop"]))
  read(await kim(["projects", "use", project.id]))
  const wanted = ["keys", "create", "--name", "ci", "--scope", "email:send", "--ip", "127.0.0.1"]
  const key = read(await kim(wanted))
  expect(key).toMatchObject({ project_id: project.id, ip_addresses: ["127.0.0.1"] })

  const send = ["emails", "send", "--from", "me@mailbox.test", "--to", "you@mailbox.test"]
  send.push("--subject", "Hi", "--text", "hello", "--url", url, "--api-key", key.key)
  const limited = ["admin", "plan", "set", "Main", "free", "--limit", "emails_per_month=1"]
  expect(read(await ann([...limited, ...local]))).toMatchObject({ plan: "free" })
  expect(read(await ann(send)).id).toBeString()
  expect(read(await kim(["usage"])).email).toEqual({ used: 1, limit: 1, remaining: 0 })
  expect(told(await ann(send))).toEqual([6, "payment_required"])

  read(await kim(["keys", "revoke", key.id, "--yes"]))
  expect(told(await ann(send))).toEqual([4, "unauthorized"])
  const audit = read(await ann(["audit", "--limit", "100"])) as { action: string }[]
  const actions = audit.map(({ action }) => action)
  expect(actions).toEqual(
    expect.arrayContaining(["api_key.revoked", "account.plan_changed", "invitation.accepted"]),
  )
  const kept = filesIn(server.home).map((path) => readFileSync(path).toString("latin1"))
  const whole = kept.join("\n").replaceAll("=\r\n", "") // mail breaks long lines
  expect(whole).toContain("invitation.accepted")
  const planted = [token, key.key, made.api_key.key, PASSWORD.trim(), "Proper-Staple-8"]
  for (const secret of planted) expect([secret, whole.includes(secret)]).toEqual([secret, false])
})

test("an operator locks an account while the server runs, and after it", async () => {
  await using server = await box()
  const { url, data_dir, ann } = server
  const local = ["--data-dir", data_dir]
  const socket = join(data_dir, "admin.sock")
  expect(statSync(socket).mode & 0o777).toBe(0o600)
  const owner = ["admin", "bootstrap", "--email", "ann@mailbox.test", "--password-stdin", ...local]
  read(await ann([...owner, "--account-name", "Acme"], PASSWORD))
  read(await ann(["login", url, "--email", "ann@mailbox.test", "--password-stdin"], PASSWORD))

  read(await ann(["admin", "lock", "Acme", "--reason", "unpaid", ...local]))
  expect(told(await ann(["projects", "list"]))).toEqual([4, "account_locked"])
  read(await ann(["admin", "unlock", "Acme", ...local]))
  read(await ann(["projects", "list"]))
  expect(told(await ann(["admin", "lock", "nobody", ...local]))).toEqual([3, "not_found"])
  const freeze = (verb: string, ...more: string[]) =>
    ann(["admin", verb, "Acme", ...more, ...local])
  const reason = ["--reason", "phishing"]
  expect(read(await freeze("freeze", ...reason))).toMatchObject({ sending_status: "frozen" })
  expect(told(await freeze("freeze", ...reason))).toEqual([5, "conflict"])
  expect(told(await freeze("unfreeze"))[0]).toBe(2)
  expect(read(await freeze("unfreeze", ...reason))).toMatchObject({ sending_status: "active" })
  const plan = ["admin", "plan", "set", "Acme", "starter", "--no-limits", ...local]
  read(await ann([...plan, "--limit", "emails_per_month=0"]))
  const { limits } = read(await ann(["accounts", "plan"])) as { limits: Record<string, number> }
  expect(limits).toMatchObject({ emails_per_month: 0, projects: 3 })
  read(await ann(plan))
  expect(read(await ann(["accounts", "plan"]))).toMatchObject({
    limits: { emails_per_month: 50_000 },
  })
  const wrong = ["admin", "plan", "set", "Acme", "gold", ...local]
  expect(told(await ann(wrong))).toEqual([7, "validation_error"])

  expect(told(await ann(["admin", "ses-callback", ...local]))).toEqual([5, "conflict"])

  await server.stop()
  const suspended = await ann(["admin", "suspend", "Acme", ...local])
  expect(read(suspended)).toMatchObject({ name: "Acme", status: "suspended" })
  const ses = ["region=eu-west-1", "access_key_id=AKID", "secret_access_key=S"]
  const settings = ["delivery.provider=ses", ...ses.map((one) => `providers.ses.${one}`)]
  const set = [...settings, "base_url=https://b.test"].flatMap((one) => ["--set", one])
  expect(read(await ann(["admin", "ses-callback", ...set, ...local]))).toEqual({
    callback_url: expect.stringMatching(
      /^https:\/\/b\.test\/v1\/callbacks\/email\/ses\/[\w-]{43}$/,
    ),
  })
  const users = read(await ann(["admin", "users", ...local])) as { email: string }[]
  expect(users.map(({ email }) => email)).toEqual(["ann@mailbox.test"])
})

test("one person owns two free accounts, and no third", async () => {
  await using server = await box({ BELFRY_PLANS_DEFAULT: "free" })
  const { url, data_dir, ann } = server
  const owner = ["admin", "bootstrap", "--email", "ann@mailbox.test", "--password-stdin"]
  read(await ann([...owner, "--data-dir", data_dir], PASSWORD))
  read(await ann(["login", url, "--email", "ann@mailbox.test", "--password-stdin"], PASSWORD))
  const both = await Promise.all(
    ["Second", "Third"].map((name) => ann(["accounts", "create", "--name", name])),
  )
  expect(both.map(({ exit }) => exit).sort()).toEqual([0, 4])
  const refused = both.find(({ exit }) => exit === 4)
  expect(JSON.parse(refused?.err ?? "").error).toMatchObject({
    code: "plan_limit_exceeded",
    details: { resource: "accounts", used: 2, limit: 2, plan: "free" },
  })
})
