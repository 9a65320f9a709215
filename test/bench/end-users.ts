import { generateKeyPairSync, sign, verify } from "node:crypto"
import { copyFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { insertUser } from "../../src/auth/end-users"
import { login } from "../../src/auth/login"
import { hash } from "../../src/sign-in/passwords"
import { newApplication } from "../harness/application"
import { team } from "../harness/people"
import { testService } from "../harness/service"
import { atLeast, atMost, type Bench, ratioOf, requireEqual, series } from "./bench"
import { type Scratch, scratchFolder } from "./scratch"

const PEERS = ["better-auth@1.7.25", "better-sqlite3@12.11.1"]

const IN_FLIGHT = 32
/** As many sign in at once as hash at once, and as many again that wait. */
const SIGN_INS = 4
const HASHES = 2
const USERS = 50
const LOOKS_A_SECOND = 200
const PASSWORD = "Quiet-River-42"

/** Contract 50; rows 11 and 12 of the benchmarks. */
export const endUsers: Bench = {
  name: "end-users",
  title: "Tokens of end users proven with their session, and sign-ins by password",

  async run({ rounds, seconds }) {
    const limit = series("limit: ES256 signatures proven by one core", "/s")
    const ours = series("ours: tokens proven, and their sessions", "/s")
    const on_node = series("peer: better-auth's `getSession` on Node", "/s")
    const on_ours = series("the same on our runtime", "/s")
    const hashes = series("limit: argon2id of 19 MiB and two passes, two at once", "/s")
    const sign_ins = series("ours: sign-ins by email and password", "/s")
    const idle = series("p99 of a token proven, alone", "ms")
    const beside = series("p99 of a token proven, beside the sign-ins", "ms")
    using peer = installPeer()
    await using box = await openBox()

    for (let round = 0; round < rounds; round++) {
      limit.values.push(await rate(seconds, 1, es256()))
      ours.values.push(await rate(seconds, IN_FLIGHT, box.prove))
      on_node.values.push(theirs(peer, "node", seconds))
      on_ours.values.push(theirs(peer, process.execPath, seconds))
      hashes.values.push(await rate(seconds, HASHES, box.compare))
      idle.values.push(await slowest(box.prove, Bun.sleep(seconds * 1000)))
      const storm = rate(seconds, SIGN_INS, box.signIn)
      beside.values.push(await slowest(box.prove, storm))
      sign_ins.values.push(await storm)
    }
    return {
      series: [limit, ours, on_node, on_ours, hashes, sign_ins, idle, beside],
      verdicts: [
        atLeast("Tokens, to ES256 of one core", ratioOf(ours, limit), 0.6),
        atLeast("Tokens, to better-auth on our runtime", ratioOf(ours, on_ours), 4),
        atLeast("Sign-ins, to argon2id", ratioOf(sign_ins, hashes), 0.9),
        atMost("A token beside sign-ins, to one alone, p99", ratioOf(beside, idle), 3, "×"),
      ],
      notes: [
        "All in one process, without HTTP, on SQLite in a file. Each token proven asks whether its session and its user are still there, and so does the peer.",
        `Ours and the peer have ${IN_FLIGHT} in flight, the sign-ins ${SIGN_INS}, of ${USERS} users in turn. Each sign-in stores a session with its tokens and its event. Beside them a token is proven ${LOOKS_A_SECOND} times a second, and timed from the call to the answer.`,
        "The peer is faster on our runtime than on Node, so the faster one counts. On our runtime it uses `bun:sqlite`, on Node `better-sqlite3`.",
      ],
    }
  },
}

/** How many a second, with so many in flight. */
async function rate(seconds: number, in_flight: number, act: () => unknown): Promise<number> {
  const begun = performance.now()
  const end = begun + seconds * 1000
  let count = 0
  const lane = async () => {
    while (performance.now() < end) {
      await act()
      count += 1
    }
  }
  await Promise.all(Array.from({ length: in_flight }, lane))
  return (count / (performance.now() - begun)) * 1000
}

/** The 99th percentile in milliseconds, of calls while the work runs. */
async function slowest(act: () => Promise<unknown>, work: Promise<unknown>): Promise<number> {
  let is_over = false
  const ended = work.finally(() => {
    is_over = true
  })
  const taken: number[] = []
  while (!is_over) {
    await Bun.sleep(1000 / LOOKS_A_SECOND)
    const begun = performance.now()
    await act()
    taken.push(performance.now() - begun)
  }
  await ended
  return taken.sort((a, b) => a - b)[Math.floor(taken.length * 0.99)] ?? Number.NaN
}

function es256() {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" })
  const key = { key: publicKey, dsaEncoding: "ieee-p1363" } as const
  const text = Buffer.alloc(700, "a")
  const signature = sign("sha256", text, { ...key, key: privateKey })
  return () => {
    if (!verify("sha256", text, key, signature)) throw new Error("a good signature is refused")
  }
}

/** An application with users, of whom the first one is signed in. */
async function openBox() {
  const service = await testService()
  const { store, parts } = service
  const application = await newApplication(service, await team(service))
  const environment = await application.environment()
  const password_hash = await hash(PASSWORD)
  const emails = Array.from({ length: USERS }, (_, at) => `person-${at}@people.test`)
  for (const email of emails)
    await store.tx((tx) => insertUser(tx, environment, { email, password_hash }))
  const client = { ip: "192.0.2.1", user_agent: "bench" }
  let turn = 0
  const signIn = async () => {
    const email = emails[turn++ % USERS] ?? ""
    const answer = await login(parts.auth, environment, { email, password: PASSWORD }, client)
    if (!("tokens" in answer) || !answer.tokens) throw new Error("a sign-in brought no tokens")
    return answer.tokens
  }
  const { access_token } = await signIn()
  const { tokens } = parts.auth
  return {
    signIn,
    async prove() {
      const { live } = await tokens.prove(access_token)
      requireEqual("sessions that live", 1, live ? 1 : 0)
    },
    compare: () => Bun.password.verify(PASSWORD, password_hash),
    [Symbol.asyncDispose]: () => service[Symbol.asyncDispose](),
  }
}

function installPeer(): Scratch {
  const scratch = scratchFolder()
  writeFileSync(join(scratch.path, "package.json"), '{ "private": true }\n')
  copyFileSync(join(import.meta.dir, "better-auth.mjs"), join(scratch.path, "better-auth.mjs"))
  const flags = ["--no-audit", "--no-fund", "--loglevel=error"]
  const made = Bun.spawnSync({
    cmd: ["npm", "install", ...flags, ...PEERS],
    cwd: scratch.path,
    stdio: ["ignore", "ignore", "pipe"],
  })
  if (made.exitCode === 0) return scratch
  throw new Error(`the peer cannot be installed: ${made.stderr.toString()}`)
}

/** Returns how many a second. */
function theirs({ path }: Scratch, runtime: string, seconds: number): number {
  const run = Bun.spawnSync({
    cmd: [runtime, "better-auth.mjs", String(seconds), String(IN_FLIGHT)],
    cwd: path,
    env: { PATH: process.env.PATH ?? "" },
    stdio: ["ignore", "pipe", "inherit"],
  })
  const found = Number(run.stdout.toString().trim().split("\n").at(-1))
  if (run.exitCode === 0 && found > 0) return found
  throw new Error(`the peer failed: ${run.stdout.toString()}`)
}
