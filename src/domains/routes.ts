import { type Static, Type as t } from "@sinclair/typebox"
import { Problems } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { Deleted, deleted, oneOf } from "../http/field-schemas"
import { answerOnce } from "../http/idempotency"
import { type Cursors, listPage } from "../http/page"
import { type AnyRoute, type Call, type Method, projectRow, route } from "../http/route"
import type { Caller } from "../identity/caller"
import { featuresOf, upgradeRequired } from "../plans/plans"
import type { Store } from "../store/store"
import { askingMs, type CheckParts, checkNow } from "./check-job"
import { FORMATS, recordsOf, toResponse, toStatus, zonefile } from "./domain-record"
import type { DomainPatch, NewDomain } from "./domains"
import * as domains from "./domains"
import {
  type DomainRow,
  type KeyRow,
  type RecordTargets,
  targetsOfProject,
} from "./expected-records"
import { isSelector, rotate } from "./key-rotation"
import { keysOf, makeKeys } from "./keys"
import { isLabels, readDomain } from "./names"
import { askProvider, identityShown, NO_IDENTITY } from "./provider-identity"
import * as schemas from "./schemas"

export interface DomainParts {
  store: Store
  secrets: Secrets
  cursors: Cursors
  domains: CheckParts
}

export const domainRoutes = (parts: DomainParts): AnyRoute[] => [
  ...listRoutes(parts),
  ...readingRoutes(parts),
  ...changingRoutes(parts),
  ...checkRoutes(parts),
]

const ALL = "/v1/domains"
const ONE = `${ALL}/{domain_id}` as const

const may = <const Path extends string>(method: Method, path: Path, status = 200) =>
  projectRow(method, path, method === "GET" ? "domains:read" : "domains:write", status)

interface OfDomain {
  params: { domain_id: string }
}

const idOf = ({ params }: OfDomain) => params.domain_id

/** The record, with the records that this project's own provider asks for. */
async function answerOf(
  { store, domains: { targets } }: DomainParts,
  row: DomainRow,
  keys?: KeyRow[],
) {
  const here = await targetsOfProject(store.read, row.project_id, targets)
  return toResponse(row, keys ?? (await keysOf(store.read, row.id)), here)
}

const listRoutes = (parts: DomainParts): AnyRoute[] => [
  route({
    ...may("POST", ALL, 201),
    summary: "Add a domain; the answer has the DNS records to add",
    description:
      "Add the required records at your DNS provider. The server looks for them by itself, or at once with `POST /v1/domains/{domain_id}/check`.",
    body: schemas.NewDomain,
    example: { domain: "example.com" },
    read: readNewDomain,
    response: schemas.Domain,
    errors: ["conflict", ["plan_upgrade_required", 402]],
    idempotent: true,
    handle: (call) => create(parts, call),
  }),
  route({
    ...may("GET", ALL),
    summary: "List domains",
    description:
      "The list begins with the newest domain. `status` and `domain` (a part of the name) filter the list.",
    query: schemas.domainQuery,
    response: schemas.Domain,
    handle: (call) => list(parts, call),
  }),
]

async function create(parts: DomainParts, call: Call<domains.NewDomain>) {
  const { store, secrets } = parts
  const { caller, body, claim } = call
  refuseUnavailable(parts.domains.targets, body)
  requireTracking(caller, body.tracking_subdomain)
  const { project_id } = caller
  await domains.refuseTaken(store.read, project_id, body.domain)
  const targets = await targetsOfProject(store.read, project_id, parts.domains.targets)
  const [keys, identity] = await Promise.all([
    makeKeys(),
    firstStanding(parts, { project_id, domain: body.domain }, targets),
  ])
  return answerOnce(store, claim, async (tx) => {
    const made = await domains.create(tx, body, { secrets, keys, identity, by: caller })
    return toResponse(made.row, made.keys, targets)
  })
}

/** So that the answer has the records of a provider that signs by itself, if it can be asked now. */
async function firstStanding(
  { domains: { net, identityOf: ask } }: DomainParts,
  named: { project_id: string; domain: string },
  targets: RecordTargets,
) {
  const said = await askProvider(named, { ask, targets, ms: askingMs(net) })
  return identityShown({ ...NO_IDENTITY, ...said }, targets)
}

function requireTracking({ plan }: Caller, subdomain: string | null | undefined) {
  if (!subdomain || featuresOf(plan).tracking_domain) return
  throw upgradeRequired("tracking_domain", plan, "starter", 402)
}

async function list(parts: DomainParts, call: Call<unknown, Static<typeof schemas.domainQuery>>) {
  const { store, cursors } = parts
  const { project_id, query } = call
  const { status, domain } = query
  const targets = await targetsOfProject(store.read, project_id, parts.domains.targets)
  const { list, ...found } = domains.list(store.read, project_id, { status, domain })
  return listPage(call, cursors, {
    ...found,
    list: async (window) => {
      const { rows, end } = await list(window)
      const keys = await domains.keysOfAll(store.read, rows)
      return { rows: rows.map((row) => toResponse(row, keys.get(row.id) ?? [], targets)), end }
    },
  })
}

const zoneQuery = t.Object({ format: t.Optional(oneOf(...FORMATS)) })

const readingRoutes = (parts: DomainParts): AnyRoute[] => [
  route({
    ...may("GET", ONE),
    summary: "Show one domain, with its records and the results of the last check",
    description: "Each record has the result of the last check. Its `hint` says what to do.",
    response: schemas.Domain,
    handle: async (call) => ({ data: await answerOf(parts, await found(parts, call)) }),
  }),
  route({
    ...may("GET", `${ONE}/status`),
    summary: "Show the progress of a domain's verification",
    description:
      "A short answer for frequent polling. `progress` is the share of required records that are right, in percent.",
    response: schemas.DomainStatusRecord,
    handle: async (call) => {
      const row = await found(parts, call)
      const { store, domains: own } = parts
      const targets = await targetsOfProject(store.read, row.project_id, own.targets)
      return { data: toStatus(row, await keysOf(store.read, row.id), targets) }
    },
  }),
  route({
    ...may("GET", `${ONE}/zonefile`),
    summary: "Show the records of a domain as a zone file or as Terraform",
    description: "`format` is `bind`, `cloudflare` or `terraform`.",
    query: zoneQuery,
    produces: "text/plain",
    handle: async (call) => {
      const row = await found(parts, call)
      const { store, domains: own } = parts
      const targets = await targetsOfProject(store.read, row.project_id, own.targets)
      const records = recordsOf(row, await keysOf(store.read, row.id), targets)
      const text = zonefile(row.domain, records, call.query.format ?? "bind")
      return new Response(text, { headers: { "content-type": "text/plain;charset=utf-8" } })
    },
  }),
]

const found = ({ store }: DomainParts, call: Pick<Call, "project_id"> & OfDomain) =>
  domains.find(store.read, call.project_id, idOf(call))

const changingRoutes = (parts: DomainParts): AnyRoute[] => [
  route({
    ...may("PATCH", ONE),
    summary: "Change the use of a domain and the names of its records",
    description:
      "Absent fields do not change. A changed name makes a new record, which you must add at your DNS provider.",
    body: schemas.DomainPatch,
    example: { return_path: "bounces" },
    read: readPatch,
    response: schemas.Domain,
    errors: [["plan_upgrade_required", 402]],
    handle: (call) => patch(parts, call),
  }),
  route({
    ...may("DELETE", ONE),
    summary: "Delete a domain; its waiting mail fails",
    description:
      "Sending from the domain stops at once. Emails that still wait fail, each with its event.",
    response: Deleted,
    handle: async (call) => {
      await parts.store.tx((tx) => domains.remove(tx, call.caller, idOf(call)))
      return deleted(idOf(call))
    },
  }),
]

async function patch(parts: DomainParts, call: Call<domains.DomainPatch> & OfDomain) {
  const { caller, body } = call
  const before = await found(parts, call)
  refuseUnavailable(parts.domains.targets, body)
  requireTracking(caller, body.tracking_subdomain)
  const problems = new Problems()
  const { return_path, tracking_subdomain } = { ...before, ...body }
  refuseSame(return_path, tracking_subdomain, problems)
  problems.throwIfAny()
  const row = await parts.store.tx((tx) => domains.patch(tx, caller, idOf(call), body))
  return { data: await answerOf(parts, row) }
}

const CHECK = "Check the records of a domain now, within ten seconds"

const checkRoutes = (parts: DomainParts): AnyRoute[] => [
  ...["check", "verify"].map((word) =>
    route({
      ...may("POST", `${ONE}/${word}`),
      summary: word === "check" ? CHECK : "Check the records of a domain now (the same as check)",
      description:
        "Asks the authoritative servers of the domain. One domain allows one check in 10 seconds and 60 an hour. " +
        "A verified domain answers 409.",
      response: schemas.Domain,
      errors: ["already_verified"],
      handle: async (call) => {
        const row = await checkNow(parts.domains, call.project_id, idOf(call))
        return { data: await answerOf(parts, row) }
      },
    }),
  ),
  route({
    ...may("POST", `${ONE}/rotate-dkim`),
    summary: "Make a new DKIM key; the old key signs until a check sees the new record",
    description:
      "Add the new record. After a check sees it, the new key signs mail. You may remove the old record after 7 days; its `hint` says when.",
    body: schemas.Rotation,
    example: { selector: "svc2" },
    readRaw: readRotation,
    response: schemas.Domain,
    errors: ["conflict"],
    handle: (call) => rotateKey(parts, call),
  }),
]

/** No body is an empty one. */
function readRotation(body: unknown, problems: Problems): Static<typeof schemas.Rotation> {
  const { selector } = (body ?? {}) as { selector?: unknown }
  if (selector === undefined || selector === null) return {}
  if (typeof selector === "string" && isSelector(selector.toLowerCase())) {
    return { selector: selector.toLowerCase() }
  }
  problems.add(
    "selector",
    "invalid",
    "The value must be one label of letters, digits and hyphens, such as svc2.",
  )
  return {}
}

async function rotateKey(
  parts: DomainParts,
  call: Call<Static<typeof schemas.Rotation>> & OfDomain,
) {
  const { store, secrets, domains: own } = parts
  const { caller, body } = call
  await found(parts, call) // before a key is made for nothing
  const made = await makeKeys()
  const keys = made.filter(({ algorithm }) => algorithm === "rsa" || own.targets.ed25519)
  const wanted = { selector: body.selector, keys, secrets }
  const turned = await store.tx((tx) => rotate(tx, caller, idOf(call), wanted))
  return { data: await answerOf(parts, turned.row, turned.keys) }
}

const NO_LABEL =
  "The value must have only letters, digits and hyphens, such as bounce, and at most 63 characters."
/** Of the embedded mailbox, which needs no records. */
const MAILBOX = "mailbox.test"

const RETURN_PATH = "bounce"
const SELECTOR = "svc1"

/** What a domain is made of. Names become lower case and A-labels. */
function readNewDomain(given: Static<typeof schemas.NewDomain>, problems: Problems): NewDomain {
  const read = readDomain(given.domain)
  if ("reason" in read) problems.add("domain", "invalid", read.reason)
  else if (read.name === MAILBOX)
    problems.add(
      "domain",
      "invalid",
      "mailbox.test is the embedded mailbox. It is always verified; do not add it.",
    )
  const dkim_selector = (given.dkim_selector ?? SELECTOR).toLowerCase()
  if (!isSelector(dkim_selector)) {
    problems.add(
      "dkim_selector",
      "invalid",
      "The value must be one label of letters, digits and hyphens, such as svc2.",
    )
  }
  const parts = readPatch(given, problems)
  const { return_path = RETURN_PATH, tracking_subdomain = null, receiving = false } = parts
  refuseSame(return_path, tracking_subdomain, problems)
  const domain = "name" in read ? read.name : ""
  return { domain, receiving, tracking_subdomain, return_path, dkim_selector }
}

/** Two records of one name would shut each other out: a CNAME stands alone. */
function refuseSame(return_path: string, tracking: string | null, problems: Problems) {
  if (return_path !== tracking) return
  problems.add("tracking_subdomain", "invalid", "The value must differ from return_path.")
}

/**
 * A record must not lead to a server that does not run: mail would be lost. Throws 422 with the code
 * `not_available` of the field.
 */
function refuseUnavailable({ receives }: RecordTargets, wanted: DomainPatch) {
  if (!wanted.receiving || receives) return
  const problems = new Problems()
  const text =
    "This server does not receive mail (smtp.inbound.enabled). Set it to false, or leave it out."
  problems.add("receiving", "not_available", text)
  problems.throwIfAny()
}

/** Reads what of a domain may change. */
function readPatch(given: Static<typeof schemas.DomainPatch>, problems: Problems): DomainPatch {
  const { receiving, return_path, tracking_subdomain } = given
  const parts: DomainPatch = {}
  if (receiving !== undefined) parts.receiving = receiving
  if (return_path !== undefined) {
    parts.return_path = readLabels("return_path", return_path, problems)
  }
  if (tracking_subdomain === null) parts.tracking_subdomain = null
  else if (tracking_subdomain !== undefined) {
    parts.tracking_subdomain = readLabels("tracking_subdomain", tracking_subdomain, problems)
  }
  return parts
}

function readLabels(field: string, given: string, problems: Problems): string {
  const text = given.toLowerCase()
  if (!isLabels(text)) problems.add(field, "invalid", NO_LABEL)
  return text
}
