import { Type as t } from "@sinclair/typebox"
import { fail } from "../core/errors"
import { VERSION } from "../core/version"
import {
  type AnyRoute,
  type Call,
  isDescribed,
  type PathParams,
  route,
  SHORT_BYTES,
} from "../http/route"
import { PER_MINUTE } from "../identity/schemas"
import type { AccessForm, AccessParts } from "./access-pages"
import { absentPage, refusalPage } from "./small-page"

/**
 * The description of the interface, for programs and for people. Neither needs a network. What makes it
 * is loaded at the first request.
 */
export function docsRoutes(table: AnyRoute[]): AnyRoute[] {
  const open = {
    method: "GET" as const,
    callers: ["none" as const] as AnyRoute["callers"],
    scope: "-",
    status: [200] as [number],
  }
  const routes: AnyRoute[] = [
    route({
      ...open,
      path: "/v1/openapi.json",
      summary: "Show the API as an OpenAPI 3.1 document",
      description: "This is the document that you read. It needs no credential.",
      produces: "application/json",
      response: t.Object(
        {},
        { additionalProperties: true, title: "OpenApiDocument", examples: [{ openapi: "3.1.0" }] },
      ),
      handle: async ({ request }) => {
        const { compressedAnswer } = await import("./compressed-text")
        return compressedAnswer(request, (await documents()).openapi, JSON_HEADERS)
      },
    }),
    route({
      ...open,
      path: "/docs",
      summary: "Show the API reference as a page",
      description: "The pages have the same content as the OpenAPI document. They need no scripts.",
      produces: "text/html",
      handle: async ({ request }) => await page(request, "/docs"),
    }),
  ]
  const described = () => [...table.filter(isDescribed), ...routes]
  const documents = once(async () => {
    const { documentsOf } = await import("./docs/documents")
    return documentsOf(described(), VERSION)
  })
  const site = once(async () => {
    const { ReferenceSite } = await import("./docs/site")
    return ReferenceSite.open(described(), await documents())
  })
  const page = async (request: Request, path: string) =>
    (await (await site()).page(request, path)) ??
    fail("not_found", `The reference has no page ${path}. Its contents are at /docs.`)
  const at = (path: string) => (call: Call) => page(call.request, path)
  const under = (folder: string) => (call: CallAt<"/{name}">) =>
    page(call.request, `${folder}/${call.params.name}`)
  return [
    ...routes,
    // People type the slash; the reference names nothing relative to itself.
    shown("/docs/", "The reference", at("/docs")),
    shown("/docs/search", "What a search in the reference finds", async ({ request }) => {
      const query = new URL(request.url).searchParams.get("q") ?? ""
      return (await site()).search(request, query.slice(0, LONGEST_QUERY))
    }),
    shown("/docs/search-index", "What a search looks in", async ({ request }) =>
      (await site()).searchIndex(request),
    ),
    shown("/docs/errors", "Every error code", at("/docs/errors")),
    shown("/docs/{name}", "An operation, or a part of the API", under("/docs")),
    shown("/docs/guides/{name}", "A guide", under("/docs/guides")),
    shown("/docs/errors/{name}", "What an error code means", under("/docs/errors")),
  ]
}

const LONGEST_QUERY = 100
const JSON_HEADERS = {
  "content-type": "application/json;charset=utf-8",
  "cache-control": "no-cache",
}

/** Made at the first call, and kept for later calls. */
function once<Value>(make: () => Value): () => Value {
  let made: { value: Value } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** A page that only shows something. */
const shown = (
  path: string,
  summary: string,
  handle: (call: CallAt<"/{name}">) => Promise<Response>,
): AnyRoute => ({
  method: "GET",
  path,
  callers: ["none"],
  scope: "-",
  status: [200],
  summary,
  page: absentPage,
  produces: "text/html",
  handle,
})

type CallAt<Path extends string, Fields = unknown> = Call<Fields, unknown, PathParams<Path>>

/** Loaded at the first visit: most servers show them rarely. */
const pages = () => import("./access-pages")

/** What people open in a browser, from a mail or because a program told them to. */
export const pageRoutes = (parts: AccessParts): AnyRoute[] => [
  ...form("/device", {
    credentials: ["user_code"],
    summary: "Sign in a program that shows a code",
    show: async ({ request }) => {
      const user_code = new URL(request.url).searchParams.get("user_code") ?? ""
      return (await pages()).askForCode({ user_code })
    },
    answer: async ({ body, ip }) => (await pages()).answerForm(parts, body, ip),
  }),
  ...form("/invitation/{token}", {
    credentials: ["token"],
    summary: "Accept an invitation",
    show: async ({ params }) => (await pages()).showInvitation(parts, params.token),
    answer: async ({ params, body, ip }) =>
      (await pages()).acceptForm(parts, params.token, body, ip),
  }),
  ...form("/password-reset/{token}", {
    credentials: ["token"],
    summary: "Choose a new password",
    show: async ({ params }) => (await pages()).showReset(parts, params.token),
    answer: async ({ params, body, ip }) =>
      (await pages()).resetForm(parts, params.token, body, ip),
  }),
]

interface FormPage<Path extends string> {
  credentials: readonly string[]
  summary: string
  show: (call: CallAt<Path>) => Promise<Response>
  answer: (call: CallAt<Path, AccessForm>) => Promise<Response>
}

/** A page that shows a form, and the same address that takes it. */
function form<const Path extends string>(path: Path, page: FormPage<Path>): AnyRoute[] {
  const { show, answer, credentials, summary } = page
  const open: Omit<AnyRoute, "method" | "handle"> = {
    path,
    credentials,
    callers: ["none"],
    scope: "-",
    status: [200],
    summary,
    per_minute: PER_MINUTE,
    limit: SHORT_BYTES,
    page: refusalPage,
    produces: "text/html",
  }
  return [
    { ...open, method: "GET", handle: show },
    { ...open, method: "POST", handle: answer },
  ]
}
