import { expect, test } from "bun:test"
import { type Belfry, binary, startBelfry } from "../harness/binary"
import { type Knot, noKnot, startKnot } from "../harness/knot"
import { readLines } from "../harness/lines"
import { lean } from "./serve"

interface Domain {
  domain: string
  status: string
  records_verified: number
  dns_records: { purpose: string; host: string; value: string; required: boolean }[]
}

/** A check comes every ten seconds, and takes as long as name servers do. */

const serverWith = (knot: Knot) =>
  startBelfry({
    env: { ...lean, BELFRY_DNS_SERVERS: knot.address, BELFRY_DOMAINS_HOST: "mx.test" },
  })

/** `belfry` at work, line by line. */
function running({ url, api_key }: Belfry, ...words: string[]) {
  const child = Bun.spawn({
    cmd: [binary, ...words, "--url", url, "--api-key", api_key],
    env: { PATH: process.env.PATH ?? "" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  })
  return {
    lines: readLines(child.stdout),
    exited: child.exited,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL")
      await child.exited
    },
  }
}

const concurrently = test.concurrent.skipIf(noKnot)

concurrently(
  "`domains add`, then `domains check --watch` walks to verified as records appear one by one",
  async () => {
    await using knot = await startKnot({ "acme.test": [] })
    await using server = await serverWith(knot)
    const added = await server.cli("domains", "add", "acme.test")
    expect(added).toMatchObject({ code: 0, stderr: "" })
    const { dns_records } = JSON.parse(added.stdout) as Domain
    const required = dns_records.filter((record) => record.required)
    const zone = required.map(({ host, value }) => `${host}. TXT "${value}"`)

    await using watch = running(server, "domains", "check", "acme.test", "--watch")
    for (let count = 0; count < zone.length; count++) {
      const has = (line: string) => (JSON.parse(line) as Domain).records_verified === count
      const seen = JSON.parse(await watch.lines.first(has)) as Domain
      expect(seen.status).toBe("pending")
      await knot.serve("acme.test", zone.slice(0, count + 1))
    }
    expect(await watch.exited).toBe(0)
    const last = JSON.parse(watch.lines.all.at(-1) ?? "") as Domain
    expect([last.status, last.records_verified]).toEqual(["verified", 4])

    const message = ["--from", "me@acme.test", "--to", "ann@mailbox.test", "--subject", "Hi"]
    const sent = await server.cli("emails", "send", ...message, "--text", "hello", "--wait")
    expect(sent).toMatchObject({ code: 0, stderr: "" })
  },
)

concurrently(
  "`domains doctor` names mistakes, and `domains records` writes a zone that is served as it is",
  async () => {
    await using knot = await startKnot({ "shop.test": ['_dmarc TXT "v=DMARC1; p=nonne"'] })
    await using server = await serverWith(knot)
    expect((await server.cli("domains", "add", "shop.test")).code).toBe(0)

    const ill = await server.cli("domains", "doctor", "shop.test")
    expect(ill.code).toBe(8)
    const records = (JSON.parse(ill.stdout) as { dns_records: { mistake: string }[] }).dns_records
    expect(records.map(({ mistake }) => mistake)).toContain("dmarc_policy")

    const { stdout: zone, code } = await server.cli(
      "domains",
      "records",
      "shop.test",
      "--format",
      "bind",
    )
    expect(code).toBe(0)
    await knot.serve("shop.test", zone.split("\n"))
    await using watch = running(server, "domains", "check", "shop.test", "--watch")
    expect(await watch.exited).toBe(0)
    const well = await server.cli("domains", "get", "shop.test")
    expect(JSON.parse(well.stdout)).toMatchObject({ status: "verified", records_verified: 4 })

    const gone = await server.cli("domains", "delete", "shop.test", "--yes")
    expect(gone.code).toBe(0)
    expect((await server.cli("domains", "get", "shop.test")).code).toBe(3)
  },
)
