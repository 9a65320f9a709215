import { expect, test } from "bun:test"
import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import {
  connection,
  profilesPath,
  readProfiles,
  saveProfile,
  webAddress,
} from "../../cli/lib/profiles"
import { program } from "../harness/program"
import { freshHome } from "./belfry"
import { FakeApi, KEY } from "./fake-api"
import { belfry } from "./lines"

function homeWith(profiles: Record<string, { url: string; api_key: string | null }>) {
  const XDG_CONFIG_HOME = freshHome()
  const path = profilesPath({ XDG_CONFIG_HOME })
  for (const [name, profile] of Object.entries(profiles)) saveProfile(path, name, profile)
  return { XDG_CONFIG_HOME, path }
}

/** Nobody signed in, and no account or project is chosen. */
const nobody = { signed_in: false, account_id: null, project_id: null }
const from = (name: string) => ({
  url_from: `the profile ${name}`,
  key_from: `the profile ${name}`,
})

const local = { url: "http://127.0.0.1:8080", api_key: "svc_live_local" }
const prod = { url: "https://mail.example.test", api_key: "svc_live_prodprodprodprodsecret" }

test("flags win over the environment, the environment over the profile, and that over defaults", () => {
  const { path, ...env } = homeWith({ local, prod })
  expect(path).toEndWith("belfry/profiles.json")
  expect(connection({}, { XDG_CONFIG_HOME: freshHome() })).toEqual({
    url: "http://127.0.0.1:8080",
    api_key: null,
    profile: null,
    ...{ url_from: null, key_from: null, ...nobody },
  })
  const stored = { ...local, profile: "local", ...from("local"), ...nobody }
  expect(connection({}, env)).toEqual(stored)
  const named = { ...prod, profile: "prod", ...from("prod"), ...nobody }
  expect(connection({}, { ...env, BELFRY_PROFILE: "prod" })).toEqual(named)
  expect(connection({ profile: "local" }, { ...env, BELFRY_PROFILE: "prod" }).url).toBe(local.url)
  const given = { BELFRY_URL: "http://env.test", BELFRY_API_KEY: "svc_live_env" }
  expect(connection({}, { ...env, ...given })).toMatchObject({
    url: "http://env.test",
    api_key: "svc_live_env",
    ...{ url_from: "BELFRY_URL", key_from: "BELFRY_API_KEY" },
  })
  const flags = { url: "http://flag.test", api_key: "svc_live_flag" }
  expect(connection(flags, { ...env, ...given })).toMatchObject({
    ...{ ...flags, url_from: "--url", key_from: "--api-key" },
  })
})

test("a stored key goes to its own server only", () => {
  const { path: _, ...env } = homeWith({ local })
  expect(connection({ url: "http://localhost:8080/" }, env).api_key).toBe(local.api_key)
  expect(connection({ url: "http://localhost:9090" }, env).api_key).toBeNull()
  expect(connection({ url: "https://elsewhere.test" }, env).api_key).toBeNull()
})

test("a key may come from a file, and a missing one is told by name", () => {
  const BELFRY_API_KEY_FILE = join(freshHome(), "key")
  const env = { XDG_CONFIG_HOME: freshHome(), BELFRY_API_KEY_FILE }
  expect(() => connection({}, env)).toThrow(BELFRY_API_KEY_FILE)
  writeFileSync(BELFRY_API_KEY_FILE, "svc_live_file\n")
  const key_from = `BELFRY_API_KEY_FILE (${BELFRY_API_KEY_FILE})`
  expect(connection({}, env)).toMatchObject({ api_key: "svc_live_file", key_from })
})

test("the profile file is its owner's alone, and no draft of it stays", () => {
  const { path } = homeWith({ local })
  writeFileSync(path, JSON.stringify(readProfiles(path)), { mode: 0o644 })
  saveProfile(path, "prod", prod)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(readProfiles(path).profiles).toEqual({ local, prod })
  expect(readdirSync(join(path, ".."))).toEqual(["profiles.json"])
})

test("profiles are listed without their keys, and chosen by name", async () => {
  const { path, ...env } = homeWith({ local, prod })
  const listed = await belfry(["profiles", "list"], { env })
  expect(listed.out).not.toContain(prod.api_key.slice(17))
  const names = JSON.parse(listed.out).map((one: { name: string; current: boolean }) => [
    one.name,
    one.current,
  ])
  expect(names).toEqual([
    ["local", true],
    ["prod", false],
  ])
  expect((await belfry(["profiles", "use", "prod"], { env })).exit).toBe(0)
  expect(readProfiles(path).current).toBe("prod")
  const unknown = await belfry(["profiles", "use", "nobody"], { env })
  expect([unknown.exit, JSON.parse(unknown.err).error.message]).toEqual([
    2,
    'there is no profile "nobody"',
  ])
})

test("a profile is enough to reach a server", async () => {
  using api = new FakeApi()
  api.data("GET /v1/emails", [])
  const { path: _, ...env } = homeWith({ local: { url: api.url, api_key: KEY } })
  expect((await belfry(["emails", "list"], { env })).exit).toBe(0)
  expect(api.seen[0]?.headers["x-api-key"]).toBe(KEY)
})

test("the address may be the one that other clients want, with /v1 behind it", () => {
  const { path: _, ...env } = homeWith({ local })
  const same = { ...local, ...from("local"), url_from: "--url", profile: "local", ...nobody }
  for (const url of [`${local.url}/v1`, `${local.url}/v1/`, "http://127.0.0.1:8080/"]) {
    expect(connection({ url }, env)).toEqual(same)
  }
})

test("who names server and key needs no profiles, not even readable ones", () => {
  const XDG_CONFIG_HOME = freshHome()
  const path = profilesPath({ XDG_CONFIG_HOME })
  mkdirSync(path, { recursive: true }) // a folder where the file should be
  const given = { BELFRY_URL: "http://env.test", BELFRY_API_KEY: "svc_live_env" }
  const url = given.BELFRY_URL
  expect(connection({}, { XDG_CONFIG_HOME, ...given })).toMatchObject({ url, profile: null })
  expect(() => connection({}, { XDG_CONFIG_HOME })).toThrow(path)
})

test("a choice that is no profile any more is told, instead of asking some other server", () => {
  const { path, ...env } = homeWith({ local })
  writeFileSync(path, JSON.stringify({ ...readProfiles(path), current: "gone" }))
  expect(() => connection({}, env)).toThrow('there is no profile "gone"')
})

test("a profile file that others could read is closed to them", () => {
  const { path } = homeWith({ local })
  chmodSync(path, 0o644)
  readProfiles(path)
  expect(statSync(path).mode & 0o777).toBe(0o600)
})

test("without HOME nothing goes into the folder one stands in", async () => {
  const cwd = freshHome()
  const child = Bun.spawn([...program, "config", "path"], {
    env: { PATH: process.env.PATH ?? "" },
    cwd,
    stderr: "ignore",
  })
  const { profiles, data_dir } = JSON.parse(await child.stdout.text())
  expect([profiles[0], data_dir[0]]).toEqual(["/", "/"])
  expect(readdirSync(cwd)).toEqual([])
})

test("a fault of --set is told as that of --set", async () => {
  const words = ["init", "--set", "log.level=loud", "--set", "lgo=1"]
  const { exit, err } = await belfry(words)
  const { message } = JSON.parse(err).error
  expect(exit).toBe(2)
  expect(message).toContain('log.level: "loud" from flag --set log.level is not valid')
  expect(message).toContain("lgo (flag --set lgo) is not a setting; did you mean log.level, log.")
})

test("a broken profile file is told by name", async () => {
  const XDG_CONFIG_HOME = freshHome()
  const path = profilesPath({ XDG_CONFIG_HOME })
  mkdirSync(join(path, ".."))
  writeFileSync(path, "{")
  const { exit, err } = await belfry(["emails", "list"], { env: { XDG_CONFIG_HOME } })
  expect(exit).toBe(74)
  expect(err).toContain(path)
})

test("config show and explain mask secrets and name the source", async () => {
  const env = { BELFRY_PROVIDERS_SMTP_PASSWORD: "hunter22", BELFRY_DATA_DIR: "/var/tmp/x" }
  const shown = await belfry(["config", "show"], { env })
  expect(shown.out).not.toContain("hunter22")
  const { out } = await belfry(["config", "explain", "data_dir"], { env })
  expect(JSON.parse(out)).toMatchObject({
    value: "/var/tmp/x",
    source: "environment BELFRY_DATA_DIR",
  })
  expect((await belfry(["config", "get", "data_dir"], { env })).out).toBe("/var/tmp/x\n")
})

test.each([
  ["localhost:8080", "http://localhost:8080"],
  ["127.0.0.1", "http://127.0.0.1"],
  ["[::1]:8080/v1", "http://[::1]:8080"],
  ["box.localhost:81", "http://box.localhost:81"],
  ["mail.example.com", "https://mail.example.com"],
  ["mail.example.com:8443/v1/", "https://mail.example.com:8443"],
  ["mailhost:8080", "https://mailhost:8080"],
  ["HTTP://mail.example.com", "HTTP://mail.example.com"],
])("the address %s means %s", (text, url) => {
  expect(webAddress(text)).toBe(url)
})

test.each(["", "nowhere", "ftp://mail.example.com", "mail example.com", "http://", "--x"])(
  "%p is not the address of a server, and the error says what would be",
  (text) => {
    expect(() => webAddress(text)).toThrow("is not the address of a server")
  },
)
