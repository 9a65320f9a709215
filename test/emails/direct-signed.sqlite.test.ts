import { describe, expect, test } from "bun:test"
import { readLocalPart } from "../../src/core/mail-token"
import { type KeyOwner, keyRows, makeKeys } from "../../src/domains/keys"
import { dkimKeys, domains, type RecordCheck } from "../../src/domains/tables"
import { testDomain } from "../domains/subject"
import { mail } from "../harness/mail"
import { postfixReceiver, withoutReceiver } from "../harness/postfix-receiver"
import { testService } from "../harness/service"
import { delivering } from "./direct-delivery"
import { a, directOn, mx } from "./providers/direct-fixture"
import { byMailauth } from "./verifiers"

const SEEN: RecordCheck = {
  status: "verified",
  found: [],
  hint: null,
  mistake: null,
  difference: null,
  answers: [],
}

describe.skipIf(withoutReceiver())(
  "mail of a verified domain, delivered by MX to a real Postfix,",
  () => {
    test("passes DKIM, SPF and DMARC there, and its reports would come back", async () => {
      await using receiver = await postfixReceiver(["ann@b.test"])
      await using it = await testService({ rules: { sending_domains: new Set() } })
      const names = { "MX b.test": mx([10, "mx.b.test"]), "A mx.b.test": a("127.0.0.1") }
      await using on = await directOn(names, { port: receiver.port, timeouts: {} })
      const project = await it.project()
      const { project_id, account_id } = project
      const row = testDomain("acme.test", { status: "verified", project_id, account_id })
      const owner: KeyOwner = { project_id, domain_id: row.id }
      const pair = await makeKeys()
      const keys = keyRows(it.parts.secrets, owner, pair, { selector: "svc1", state: "active" })
      await it.store.tx(async (tx) => {
        await tx.insert(domains).values({ ...row, records: { return_path: SEEN } })
        await tx.insert(dkimKeys).values(keys)
      })

      const { status, body } = await project.post(
        "/v1/emails",
        mail({ to: "ann@b.test", from: "Bell <bell@acme.test>", html: "<p>Grüße</p>" }),
      )
      expect(status).toBe(201)
      await delivering(it, on.provider, async () => {
        const read = await project.get(`/v1/emails/${body.id}`)
        return read.body.data.status === "delivered"
      })

      const [stored = ""] = await receiver.mails("ann@b.test", 1)
      const sender = /^Return-Path: <(.+)>$/m.exec(stored)?.[1] ?? ""
      const [local = "", host = ""] = sender.split("@")
      expect(host).toBe(`${row.return_path}.acme.test`)
      expect(readLocalPart(it.parts.secrets, local)).toEqual({ kind: "b", message_id: body.id })

      const raw = Buffer.from(stored.replaceAll("\n", "\r\n"), "latin1")
      const records: Record<string, string> = {
        [host]: "v=spf1 ip4:192.0.2.10 ~all",
        "_dmarc.acme.test": "v=DMARC1; p=reject",
      }
      for (const { selector, algorithm, public_key } of keys) {
        const name = `${selector}._domainkey.acme.test`
        records[name] = `v=DKIM1; k=${algorithm}; p=${public_key}`
      }
      const found = await byMailauth(raw, sender, records)
      expect(found).toMatchObject({ spf: "pass", dmarc: "pass" })
      expect(new Set(found.dkim)).toEqual(new Set(["pass"]))
    })
  },
)
