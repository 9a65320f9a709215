import { afterAll, describe, expect, test } from "bun:test"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { ConfigError, hostAndPort, loadSettings, type Sources } from "../../src/core/config"

const folder = mkdtempSync(join(tmpdir(), "belfry-config-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const load = (sources: Sources) => loadSettings({ environment: {}, ...sources })

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

function faults(sources: Sources): readonly string[] {
  try {
    load(sources)
  } catch (error) {
    if (error instanceof ConfigError) return error.faults
    throw error
  }
  return []
}

describe("without any word of the operator", () => {
  test("everything has its default, durations in milliseconds", () => {
    const { values } = load({ environment: { HOME: "/home/ann" } })
    expect(values).toMatchObject({
      data_dir: "/home/ann/.local/share/belfry",
      database_url: null,
      "http.listen": ":8080",
      "http.idle_timeout": 10_000,
      "delivery.retry.max_age": 172_800_000,
      "storage.min_free_mb": 512,
      sending_domains: [],
    })
  })

  test("the data folder follows XDG_DATA_HOME", () => {
    expect(load({ environment: { XDG_DATA_HOME: "/data" } }).values.data_dir).toBe("/data/belfry")
  })

  test("a command's own defaults are the weakest of all", () => {
    const defaults = { "http.listen": "127.0.0.1:8080", data_dir: "/up" }
    expect(load({ defaults }).values).toMatchObject(defaults)
    const environment = { BELFRY_DATA_DIR: "/env" }
    const loaded = load({ defaults, environment })
    expect(loaded.values.data_dir).toBe("/env")
    expect(loaded.explain("data_dir")).toMatchObject({ value: "/env", default: "/up" })
  })
})

describe("precedence", () => {
  const toml = file("order.toml", 'data_dir = "/toml"\n[log]\nlevel = "error"\nformat = "json"\n')
  const secret = file("level", "warn\n")

  test("flags win over environment, files of the environment, the TOML file, defaults", () => {
    const environment = { BELFRY_DATA_DIR: "/env", BELFRY_LOG_LEVEL_FILE: secret }
    const { values, explain } = load({ flags: { data_dir: "/flag" }, environment, file: toml })
    expect(values.data_dir).toBe("/flag")
    expect(values["log.level"]).toBe("warn")
    expect(values["log.format"]).toBe("json")
    expect(explain("data_dir").source).toBe("flag --data-dir")
    expect(explain("log.level").source).toContain("BELFRY_LOG_LEVEL_FILE")
    expect(explain("log.format").source).toBe(`file ${toml}`)
    expect(explain("http.listen").source).toBe("default")
    expect(load({ environment, file: toml }).values.data_dir).toBe("/env")
    expect(load({ file: toml }).values.data_dir).toBe("/toml")
  })

  test("BELFRY_CONFIG names the file, and the command's own file wins over it", () => {
    const environment = { BELFRY_CONFIG: toml }
    expect(load({ environment }).values.data_dir).toBe("/toml")
    const other = file("other.toml", 'data_dir = "/other"')
    expect(load({ environment, file: other }).values.data_dir).toBe("/other")
  })

  test("the service manager's credentials are read by the name of the key", () => {
    file("providers.smtp.password", "s3cret\n")
    const loaded = load({ environment: { CREDENTIALS_DIRECTORY: folder } })
    expect(loaded.values["providers.smtp.password"]).toBe("s3cret")
    expect(JSON.stringify(loaded.all())).not.toContain("s3cret")
  })

  test("an issuer completes the name of its endpoint, wherever that is set", () => {
    const name = "auth.oauth.oidc-my-work.endpoint"
    const url = "http://127.0.0.1:9000"
    const variable = "BELFRY_AUTH_OAUTH_OIDC_MY_WORK_ENDPOINT"
    const path = file("issuer.toml", `[auth.oauth.oidc-my-work]\nendpoint = "${url}"`)
    for (const sources of [
      { file: path },
      { flags: { [name]: url } as never },
      { environment: { [variable]: url } },
      { environment: { [`${variable}_FILE`]: file("issuer", url) } },
    ]) {
      const { values, all } = load(sources)
      expect(values[name]).toBe(url)
      expect(all()).toContainEqual(expect.objectContaining({ key: name, value: url }))
    }
    expect(load({}).explain(name)).toMatchObject({ value: null, source: "default" })
    expect(faults({ flags: { [name]: "nowhere" } as never })[0]).toContain(name)
    expect(faults({ flags: { "auth.oauth.oidc_work.endpoint": url } as never })).toHaveLength(1)
  })

  test("an empty variable and an undefined flag say nothing", () => {
    const { values } = load({ flags: { data_dir: undefined }, environment: { DATABASE_URL: "" } })
    expect(values.database_url).toBeNull()
  })
})

describe("values", () => {
  test("lists come with commas, or as TOML lists", () => {
    const environment = { BELFRY_SENDING_DOMAINS: "Example.test, b.test.,", BELFRY_DNS_SERVERS: "" }
    expect(load({ environment }).values.sending_domains).toEqual(["example.test", "b.test"])
    const path = file("lists.toml", '[dns]\nservers = ["9.9.9.9", "127.0.0.1:5353", "[::1]:53"]')
    expect(load({ file: path }).values["dns.servers"]).toHaveLength(3)
  })

  test.each([
    ["Mail.Example.COM.", "mail.example.com"],
    ["localhost", "localhost"],
    ["192.0.2.7", "192.0.2.7"],
    ["2001:DB8::7", "2001:db8::7"],
    ["_mx.1.example", "_mx.1.example"],
  ])("the host %s is kept as %s", (text, expected) => {
    expect(load({ flags: { "domains.host": text } }).values["domains.host"]).toBe(expected)
  })

  test.each([
    ["250ms", 250],
    ["30s", 30_000],
    ["5m", 300_000],
    ["48h", 172_800_000],
    ["1.5s", 1500],
  ])("the duration %s is %d milliseconds", (text, expected) => {
    const name = "delivery.retry.max_age"
    const loaded = load({ environment: { BELFRY_DELIVERY_RETRY_MAX_AGE: text } })
    expect(loaded.values[name]).toBe(expected)
    const shown = String(loaded.explain(name).value)
    expect(load({ flags: { [name]: shown } }).values[name]).toBe(expected)
  })

  test.each([
    ["http.listen", "8080", "host:port"],
    ["http.listen", ":70000", "65535"],
    ["delivery.lease", "30", "unit"],
    ["delivery.lease", "4999ms", "from 5s to 60s"],
    ["delivery.lease", "61s", "from 5s to 60s"],
    ["http.idle_timeout", "256s", "from 1s to 255s"],
    ["http.idle_timeout", "0s", "from 1s to 255s"],
    ["delivery.concurrency", "many", "whole number"],
    ["delivery.concurrency", "0", "from 1"],
    ["delivery.per_domain", "0", "from 1"],
    ["delivery.mx_port", "70000", "to 65535"],
    ["delivery.allow_private", "intranet", "networks"],
    ["delivery.ehlo_name", "two words", "host name"],
    ["domains.host", "mx..example.com", "host name"],
    ["domains.host", "mx.example.com:25", "host name"],
    ["domains.host", "192.0.2.777", "IP address"],
    ["domains.tracking_host", ".", "host name"],
    ["mailbox.enabled", "maybe", "true or false"],
    ["log.level", "loud", "debug, info, warn, error"],
    ["http.trusted_proxies", "10.0.0.0/99", "networks"],
    ["domains.spf", "include:spf.example.test,ip4:999.1.1.1", "SPF mechanisms"],
    ["dns.servers", "ns.example.com", "IP address"],
    ["sending_domains", "not a domain", "domain names"],
    ["database_url", "mysql://x", "postgres://"],
    ["providers.smtp.tls", "maybe", "starttls"],
    ["providers.ses.region", "Ireland", "eu-west-1"],
  ] as const)("%s refuses %j and says what it expects", (key, value, expected) => {
    const [fault, ...rest] = faults({ flags: { [key]: value } })
    expect(rest).toEqual([])
    for (const part of [key, value, "flag --", expected]) expect(fault).toContain(part)
  })

  test("the parts of a listen address", () => {
    expect(hostAndPort(":8080")).toEqual({ host: "", port: 8080 })
    expect(hostAndPort("[::1]:0")).toEqual({ host: "::1", port: 0 })
    expect(hostAndPort("127.0.0.1:25")).toEqual({ host: "127.0.0.1", port: 25 })
  })
})

describe("faults", () => {
  test("are all told at once", () => {
    const path = file("bad.toml", '[log]\nlevle = "warn"\n[storage]\ncache_mb = "lots"')
    const environment = { BELFRY_DATA_DRI: "/x", BELFRY_HTTP_LISTEN: "nowhere" }
    const all = faults({ environment, file: path })
    expect(all).toHaveLength(4)
    expect(all.join("\n")).toContain("did you mean BELFRY_DATA_DIR?")
    expect(all.join("\n")).toContain("did you mean log.level?")
  })

  test("names of the command line, the installer and the tests are none", () => {
    const environment = {
      BELFRY_URL: "http://x",
      BELFRY_API_KEY: "k",
      BELFRY_PROFILE: "local",
      BELFRY_NO_COLOR: "1",
      BELFRY_INSTALL_DIR: "/opt",
      BELFRY_TEST_ENGINE: "sqlite",
    }
    expect(faults({ environment })).toEqual([])
  })

  test("a key is explained, and an unknown one names the nearest", () => {
    const { explain, all } = load({})
    expect(explain("http.idle_timeout")).toMatchObject({ value: "10s", default: "10s" })
    expect(() => explain("http.idle_timeuot")).toThrow("did you mean http.idle_timeout?")
    expect(all().every(({ about }) => about.length > 10)).toBe(true)
  })

  test.each([
    ["lgo", "did you mean log.level, log.format?"],
    ["htp.lsn", "did you mean http.listen, http.idle_timeout"],
    ["zzz", "zzz (file"],
  ])(
    "the unknown key %s gets the nearest section, where one is within two typing errors",
    (name, told) => {
      expect(faults({ file: file("unknown.toml", `${name} = 1`) })[0]).toContain(told)
    },
  )

  test("an unknown variable gets the same", () => {
    const told = (name: string) => faults({ environment: { [name]: "1" } })[0]
    expect(told("BELFRY_LGO")).toContain("did you mean BELFRY_LOG_LEVEL, BELFRY_LOG_FORMAT?")
    expect(told("BELFRY_DATABASE_URL")).toContain("did you mean DATABASE_URL?")
    expect(told("BELFRY_ZZZZZZ")).toEndWith("is not a setting")
  })

  test("a missing file, a broken file and a missing secret file are faults", () => {
    expect(faults({ file: "/nowhere/x.toml" })[0]).toContain("cannot be read")
    expect(faults({ file: file("broken.toml", "= =") })[0]).toContain("is not valid TOML")
    const environment = { DATABASE_URL_FILE: "/nowhere/url" }
    expect(faults({ environment })[0]).toContain("/nowhere/url")
  })

  test("a relay without a host is a fault, because nothing could be delivered", () => {
    expect(faults({ flags: { "delivery.provider": "smtp" } })[0]).toContain("providers.smtp.host")
    const region = { "providers.ses.region": "eu-west-1" }
    expect(faults({ flags: { "delivery.provider": "ses", ...region } })).toEqual([
      "providers.ses.access_key_id is missing, but delivery.provider is ses. Set it",
      "providers.ses.secret_access_key is missing, but delivery.provider is ses. Set it",
    ])
  })

  test("a direct way to Postgres without the usual one is a fault: it would be SQLite", () => {
    const environment = { DATABASE_DIRECT_URL: "postgres://db/x" }
    expect(faults({ environment })[0]).toContain("DATABASE_URL is missing")
    const both = { ...environment, DATABASE_URL: "postgres://pooler/x" }
    expect(load({ environment: both }).values.database_direct_url).toBe("postgres://db/x")
  })

  test("a password is hidden whole, also one that is not encoded or that stands in the query", () => {
    const passwords = ["hun@ter2", "hun/t@er2"].map((one) => `postgres://ann:${one}@db/x`)
    for (const url of [
      ...passwords,
      "postgres://db/x?user=ann&password=hun@ter2&sslmode=require",
    ]) {
      const shown = JSON.stringify(load({ environment: { DATABASE_URL: url } }).all())
      expect(shown).not.toMatch(/hun|er2/)
      expect(shown).toContain("********")
    }
  })

  test("no secret is ever shown", () => {
    const environment = {
      DATABASE_URL: "postgres://ann:hunter2@db/x",
      BELFRY_SECURITY_MASTER_KEY: Buffer.alloc(32, 7).toString("base64"),
    }
    const shown = JSON.stringify(load({ environment }).all())
    expect(shown).toContain("postgres://ann:********@db/x")
    expect(shown).not.toContain("hunter2")
    expect(shown).not.toContain(environment.BELFRY_SECURITY_MASTER_KEY)
    const bad = {
      BELFRY_SECURITY_MASTER_KEY: "c2hvcnQtc2VjcmV0",
      DATABASE_URL: "http://a:pw1234@x",
    }
    const told = faults({ environment: bad }).join("\n")
    expect(told).toContain("32 bytes")
    expect(told).not.toContain("c2hvcnQtc2VjcmV0")
    expect(told).not.toContain("pw1234")
  })
})
