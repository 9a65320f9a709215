import { afterAll, beforeAll, describe, expect, test } from "bun:test"
import { resolver } from "../../src/core/dns"
import { openWorkers, type Workers } from "../../src/core/workers"
import { verify } from "../../src/inbound/verdicts"
import type { MailVerdicts } from "../../src/inbound/verify-task"
import { type NameServer, nameServer } from "../core/name-server"
import { missingModules } from "../harness/peers"
import { sizes } from "../harness/sizes"
import { type PeerVerdicts, pythonVerdicts } from "./peer-verdicts"
import { type SampleMail, sampleMails } from "./sample-mails"

const SEED = 13

const is_missing = missingModules("dkim", "spf", "authheaders", "nacl")

interface Difference {
  ours: string
  theirs: string
  /** What must have been done to the mail, or to the signature. */
  trait: RegExp
  why: string
}

/** Every way in which a signature may be judged differently. All others are mistakes. */
const OF_DKIM: Difference[] = [
  { ours: "fail", theirs: "pass|temperror", trait: /^sha1$/, why: "RFC 8301 3.1 forbids SHA-1" },
  {
    ours: "fail",
    theirs: "pass|temperror",
    trait: /^(expired a minute ago|expires before it was made)$/,
    why: "python3-dkim gives 10 hours after x=, and does not compare x= with t=",
  },
  {
    ours: "pass|temperror",
    theirs: "fail",
    trait: /^made in the future$/,
    why: "RFC 6376 3.5, t=: a verifier MAY ignore such signatures, and a wrong clock is no forgery",
  },
  {
    ours: "fail|none",
    theirs: "pass|temperror",
    trait: /^length of/,
    why: "RFC 6376 8.2: what was added behind l= can be written by everybody",
  },
  {
    ours: "fail",
    theirs: "pass|temperror",
    trait: /^From not covered$/,
    why: "RFC 6376 6.1.1: a signature without From is a PERMFAIL",
  },
  {
    ours: "fail",
    theirs: "pass",
    trait: /^a key for SHA-1$/,
    why: "RFC 6376 6.1.2, 6: python3-dkim does not look at h= of the key record",
  },
  {
    ours: "none",
    theirs: "fail",
    trait: /^a key in test mode$/,
    why: "RFC 6376 3.6.1, t=y: a wrong signature of a domain that tests counts like none",
  },
  {
    ours: "fail",
    theirs: "temperror",
    trait: /^a key that DNS does not tell$/,
    why: "a body that was changed fails without its key",
  },
]

/** As for signatures. Where a signature is judged differently, DMARC starts from our result. */
const OF_DMARC: Difference[] = [
  {
    ours: "temperror",
    theirs: "fail",
    trait: /a key that DNS does not tell|no answer|without an answer/,
    why: "what could have spoken for the author is not known yet, so nothing failed",
  },
  {
    ours: "fail",
    theirs: "pass|none|temperror",
    trait: /^another From/,
    why: "RFC 7489 6.6.1: python3-authheaders joins the addresses of several From fields",
  },
  {
    ours: "none",
    theirs: "pass|fail",
    trait: /^policy: unknown policy/,
    why: "RFC 7489 6.6.3, 6: python3-authheaders takes any word for a policy",
  },
  {
    ours: "pass|fail|temperror",
    theirs: "none",
    trait: /^policy: no policy/,
    why: "RFC 7489 6.6.3, 6: a record that asks for reports counts as p=none",
  },
]

const OF_ARC: Difference[] = [
  {
    ours: "fail",
    theirs: "temperror",
    trait: /^another From/,
    why: "a message signature that leaves a From field open fails without any key",
  },
]

const OF_SPF: Difference[] = [
  {
    ours: "permerror",
    theirs: "fail",
    trait: /a macro without (parts|an end)/,
    why: "RFC 7208 7.1 and 7.3: wrong macros are syntax errors, and python3-spf passes over them",
  },
]

const fits = (one: Difference, ours: string, theirs: string) =>
  one.ours.split("|").includes(ours) && one.theirs.split("|").includes(theirs)

const known = (list: Difference[], ours: string, theirs: string, traits: string[]) =>
  ours === theirs ||
  list.some((one) => fits(one, ours, theirs) && traits.some((trait) => one.trait.test(trait)))

function disagreements(mail: SampleMail, own: MailVerdicts, peer: PeerVerdicts): string[] {
  const told: string[] = []
  const differ = (what: string, ours: string, theirs: string) =>
    told.push(`${mail.name}: ${what} is ${ours} here and ${theirs} there`)
  const { spf, dkim, dmarc, arc } = own.detail
  if (!known(OF_SPF, spf.result, peer.spf.result, mail.traits)) {
    differ("SPF", spf.result, `${peer.spf.result} (${peer.spf.why})`)
  }
  if (!known(OF_ARC, arc, peer.arc.result, mail.traits)) differ("ARC", arc, peer.arc.result)
  if (dkim.length !== peer.dkim.length) {
    differ("the number of signatures", `${dkim.length}`, `${peer.dkim.length}`)
  }
  for (const [at, { result, selector }] of dkim.entries()) {
    const theirs = peer.dkim[at]?.result ?? ""
    const own_traits = mail.traits.flatMap((trait) => {
      const [name, text = ""] = trait.split(": ")
      return name === selector ? text : []
    })
    if (!known(OF_DKIM, result, theirs, own_traits)) differ(selector, result, theirs)
  }
  if (!known(OF_DMARC, dmarc.result, peer.dmarc, mail.traits)) {
    differ("DMARC", dmarc.result, peer.dmarc)
  }
  return told
}

describe.skipIf(is_missing)("Python judges the same mail the same way", () => {
  let zone: SampleMail["zone"]
  let server: NameServer
  let workers: Workers
  beforeAll(async () => {
    server = await nameServer((name, kind) => zone[`${kind} ${name}`.toLowerCase()] ?? [])
    workers = openWorkers({ size: 2 })
  })
  afterAll(async () => {
    server.close()
    await workers.close()
  })

  async function judge({ raw, arrival, zone: given }: SampleMail): Promise<MailVerdicts> {
    zone = Object.fromEntries(
      Object.entries(given).map(([name, rows]) => [name.toLowerCase(), rows]),
    )
    const dns = resolver({ servers: [server.address] })
    return verify(raw, arrival, { workers, dns, host: "mx.here.test" })
  }

  test(`${sizes.verdicts} mails`, async () => {
    const mails = sampleMails(SEED, sizes.verdicts)
    const own: MailVerdicts[] = []
    for (const mail of mails) own.push(await judge(mail))
    const peers = await pythonVerdicts(mails, own)
    const told = mails.flatMap((mail, at) => {
      const [ours, theirs] = [own[at], peers[at]]
      return ours && theirs ? disagreements(mail, ours, theirs) : [`${mail.name} was not judged`]
    })
    expect(told).toEqual([])

    // Each result occurs, so that equal does not mean empty.
    const results = (of: (verdicts: MailVerdicts) => string) => [...new Set(own.map(of))].sort()
    for (const kind of ["spf", "dkim", "dmarc", "arc"] as const) {
      expect(results((verdicts) => verdicts[kind])).toEqual(["fail", "none", "pass", "temperror"])
    }
  })
})
