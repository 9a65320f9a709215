import { type Static, type TObject, Type as t } from "@sinclair/typebox"
import { ApiError, invalid, Problems } from "../core/errors"
import type { Secrets } from "../core/secrets"
import { isoFrom, millisFrom } from "../core/time"
import { comparable, domainOf, notOneAddress, parseMailbox, sendableForm } from "../lib/address"
import type { FoundRows, Keyset, ListWindow } from "../store/rows"
import type { Store } from "../store/store"
import { aliasOf } from "./field-schemas"
import type { Call, Enveloped } from "./route"
import { pathOf, queryOf } from "./target"

const DEFAULT_PER_PAGE = 25
const MAX_PER_PAGE = 100
const DEEPEST_ROW = 10_000
const MAC_BYTES = 16

const paging = {
  page: t.Integer({ default: 1, minimum: 1 }),
  per_page: t.Integer({ default: DEFAULT_PER_PAGE, minimum: 1, maximum: MAX_PER_PAGE }),
  limit: aliasOf("per_page", t.Integer({ minimum: 1, maximum: MAX_PER_PAGE })),
  cursor: t.Optional(
    t.String({ maxLength: 512, description: "The `meta.next_cursor` of the page before." }),
  ),
  after: t.Optional(
    t.String({ maxLength: 512, description: "The id of a record. The list begins after it." }),
  ),
  before: t.Optional(
    t.String({ maxLength: 512, description: "The id of a record. The list ends before it." }),
  ),
}

export type PageQuery = Static<TObject<typeof paging>>

/** Inclusive lower, exclusive upper bound. */
export const dateFilters = {
  created_after: t.Optional(t.String()),
  created_before: t.Optional(t.String()),
  start_date: t.Optional(t.String({ description: "Another name of `created_after`." })),
  end_date: t.Optional(t.String({ description: "Another name of `created_before`." })),
}

export const pageQuery = <Fields extends TObject["properties"]>(fields: Fields) =>
  t.Object({ ...paging, ...fields })

/** A list that pages are read of. */
interface PagedList<Row> {
  /** Throws 404 where the list has no record of this id. */
  find?: (id: string) => Promise<unknown>
  /** The same where the list is not in the order of its ids: resolves with the key of the record in its order. */
  keyOf?: (id: string) => Promise<string>
  /** May bring the total of its own. */
  list: (window: ListWindow) => Promise<FoundRows<Row> | Page<Row>>
  total?: Page<Row>["total"]
}

/**
 * What a `list` function returns; `total` is asked for only where the page needs it. Null: there are
 * too many to be counted.
 */
export interface Page<Row> extends FoundRows<Row> {
  total: () => Promise<number | null>
}

/** What a list needs to know of its call. */
type ListCall = Pick<Call<unknown, PageQuery>, "request" | "query"> & {
  caller: Pick<Call["caller"], "project_id" | "account_id" | "user_id">
}

/** Names one list of one owner, so that a cursor of another list means nothing here. */
function listOf({ request, caller }: ListCall): string {
  const { project_id, account_id, user_id } = caller
  return `${project_id || account_id || user_id}\n${pathOf(request)}`
}

/** One row more than shown is read, which tells whether there is a next page. */
async function windowOf<Row>(
  call: ListCall,
  cursors: Cursors,
  { find, keyOf }: PagedList<Row>,
): Promise<ListWindow> {
  const { page, per_page, cursor, after, before } = call.query
  const limit = per_page + 1
  refuseTwoPlaces(call)
  if (cursor !== undefined) {
    return { limit, offset: 0, ...keysetOf(cursors.read(listOf(call), cursor)) }
  }
  const id = after ?? before
  if (id === undefined) {
    if (page * per_page > DEEPEST_ROW) throw tooDeep()
    return { limit, offset: (page - 1) * per_page }
  }
  const name = after === undefined ? "before" : "after"
  try {
    const found = keyOf ? await keyOf(id) : await find?.(id)
    return { limit, offset: 0, [name]: keyOf ? found : id }
  } catch (error) {
    return refuseStranger(name, id, error)
  }
}

/** A list begins in one place. */
function refuseTwoPlaces({ request }: ListCall) {
  const given = queryOf(request)
  const [first, second] = ["after", "before", "cursor", "page"].filter((name) => given.has(name))
  const exclusive = given.has("after") || given.has("before")
  if (!exclusive || !first || !second) return
  throw invalid(second, "invalid", `Give either ${first} or ${second}, not both.`)
}

function refuseStranger(name: string, id: string, error: unknown): never {
  if (!(error instanceof ApiError) || error.status !== 404) throw error
  throw invalid(name, "invalid", `This list has no record with the id ${id}.`)
}

/** In a cursor that goes back; no key begins like this. */
const BACK = "<"

const keysetOf = (text: string): Keyset =>
  text.startsWith(BACK) ? { before: text.slice(1) } : { after: text }

/** The page that a call asks for: the one way to answer with a list. `shown` makes the answer of a row. */
export async function listPage<Row extends { id: string }, Shown = Row>(
  call: ListCall,
  cursors: Cursors,
  list: PagedList<Row>,
  shown: (row: Row) => Shown = (row) => row as unknown as Shown,
): Promise<Enveloped<Shown[]>> {
  const window = await windowOf(call, cursors, list)
  const found = await list.list(window)
  const page = { total: list.total, ...found } as Page<Row>
  const { request, query } = call
  const { per_page } = query
  const back = window.before !== undefined
  const rows = page.rows.slice(0, per_page)
  const is_full = page.rows.length > per_page
  const incomplete = !is_full && page.end !== undefined
  const has_more = is_full || incomplete
  const next = `${back ? BACK : ""}${incomplete ? page.end : rows.at(-1)?.id}`
  const next_cursor = has_more ? cursors.write(listOf(call), next) : null
  const total = incomplete ? async () => null : page.total
  const place = isNumbered(query) ? await numbered(query, total) : UNNUMBERED
  const meta = { per_page, ...place, has_more, next_cursor, ...(incomplete && { incomplete }) }
  const by_number = isNumbered(query) && !incomplete
  const headers: Record<string, string> = has_more
    ? { link: `<${nextAddress(request, { ...query, by_number }, next_cursor)}>; rel="next"` }
    : {}
  if (back) rows.reverse()
  return { top: { has_more }, data: rows.map(shown), meta, headers }
}

const isNumbered = ({ cursor, after, before }: PageQuery) =>
  (cursor ?? after ?? before) === undefined

const UNNUMBERED = { page: null, total: null, total_pages: null }

async function numbered({ page, per_page }: PageQuery, count: () => Promise<number | null>) {
  const total = await count()
  return { page, total, total_pages: total === null ? null : Math.ceil(total / per_page) }
}

/** By number as long as numbers reach; the page after the deepest one has a cursor only. */
function nextAddress(
  request: Request,
  query: PageQuery & { by_number: boolean },
  next_cursor: string | null,
): string {
  const search = queryOf(request)
  const next = query.page + 1
  if (query.by_number && next * query.per_page <= DEEPEST_ROW) {
    search.set("page", String(next))
  } else {
    for (const name of ["page", "after", "before"]) search.delete(name)
    search.set("cursor", next_cursor ?? "")
  }
  return `${pathOf(request)}?${search}`
}

/** What routes with a list need. */
export interface ListParts {
  store: Store
  cursors: Cursors
}

/** A cursor comes back from outside: its MAC says that we wrote it, and for which list. */
export class Cursors {
  readonly #secrets: Secrets

  constructor(secrets: Secrets) {
    this.#secrets = secrets
  }

  write(list: string, id: string): string {
    return `${Buffer.from(id).toString("base64url")}.${this.#mac(list, id)}`
  }

  /** Throws 422 for a cursor that was made up, changed, or written for another list. */
  read(list: string, cursor: string): string {
    const [data = ""] = cursor.split(".")
    const id = Buffer.from(data, "base64url").toString()
    // Decoding forgives what does not belong there: only the one spelling we wrote may pass.
    if (cursor !== this.write(list, id)) {
      const message = "This cursor does not belong to this list. Leave it out to begin again."
      throw invalid("cursor", "invalid", message)
    }
    return id
  }

  #mac = (list: string, id: string) =>
    this.#secrets.mac("cursor", `${list}\n${id}`).subarray(0, MAC_BYTES).toString("base64url")
}

type DateQuery = Static<TObject<typeof dateFilters>>

/** The offset may be without its colon, or without its minutes, as programs write it. */
const WITH_OFFSET =
  /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)(?:Z|([+-]\d\d)(?::?(\d\d))?)$/i

/** The two bounds of a list, whichever names they were given under. */
export function datesOf(query: DateQuery) {
  const problems = new Problems()
  const read = (name: keyof DateQuery) => {
    const text = query[name]
    return text === undefined ? undefined : readTime(name, text, problems)
  }
  const after = read("created_after") ?? read("start_date")
  const before = read("created_before") ?? read("end_date")
  problems.throwIfAny()
  return { after, before }
}

/** ISO 8601 with an offset becomes our form, in UTC; anything else is a problem. */
export function readTime(path: string, text: string, problems: Problems): string | undefined {
  const [, day = "", time, hours = "+00", minutes = "00"] = WITH_OFFSET.exec(text) ?? []
  const milliseconds = isDay(day) ? millisFrom(`${day}T${time}${hours}:${minutes}`) : NaN
  const iso = Number.isNaN(milliseconds) ? "" : isoFrom(milliseconds)
  if (iso.length === ISO_LENGTH) return iso
  problems.add(
    path,
    "invalid",
    "The value must be a time of ISO 8601 with an offset, such as 2026-11-21T10:30:00Z.",
  )
  return undefined
}

/** Beyond the years 0 to 9999 the text is longer, and no longer sorts as time does. */
const ISO_LENGTH = 24

/** A 30th of February would be read as a day in March. */
export function isDay(date: string): boolean {
  const start = millisFrom(date)
  return !Number.isNaN(start) && isoFrom(start).startsWith(date)
}

function tooDeep() {
  const message = `Pages by number end at row ${DEEPEST_ROW}. Continue with \`meta.next_cursor\`.`
  return invalid("page", "use_cursor", message, { reason: "use_cursor" })
}

interface AddressFilters {
  to?: string | undefined
  from?: string | undefined
  domain?: string | undefined
}

/**
 * The filters of a list in the form in which addresses and domains compare. Throws 422, as
 * `invalid_email` where an address is the only thing that cannot be read.
 */
export function comparableFilters({ to, from, domain }: AddressFilters): AddressFilters {
  const problems = new Problems()
  const read = (path: string, text: string) => {
    const email = parseMailbox(text)?.email ?? sendableForm(text) // other servers write such addresses
    if (email === undefined) problems.add(path, "invalid_email", notOneAddress(text))
    return comparable(email ?? "")
  }
  const filters: AddressFilters = {}
  if (to !== undefined) filters.to = read("to", to)
  if (from !== undefined) filters.from = read("from", from)
  if (domain !== undefined) {
    filters.domain = domainOf(`x@${domain}`)
    if (filters.domain === "") problems.add("domain", "invalid", "This is not a domain name.")
  }
  problems.throwIfAny()
  return filters
}
