import { Type as t } from "@sinclair/typebox"
import { VERSION } from "../core/version"
import { openApi } from "../http/openapi"
import type { Call } from "../http/route"
import { type AnyRoute, type PathParams, route } from "../http/route"
import { LIMIT_BYTES, PER_MINUTE } from "../identity/schemas"
import * as device from "./device-page"
import { docsPage, docsResponse } from "./docs"
import * as invitation from "./link-pages"
import * as password from "./link-pages"
import { errorPage, refusalPage, startPage } from "./small-page"

/** The description of the interface, for programs and for people. Neither needs a network. */
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
      handle: () => new Response(document(), { headers: JSON_HEADERS }),
    }),
    route({
      ...open,
      path: "/docs",
      summary: "Show the API reference as a page",
      description: "The page has the same content as the OpenAPI document. It needs no scripts.",
      produces: "text/html",
      handle: () => docsResponse(page()),
    }),
  ]
  const description = once(() => {
    const described = table.filter(({ page }) => page === undefined)
    return openApi([...described, ...routes], VERSION)
  })
  const document = once(() => JSON.stringify(description()))
  const page = once(() => docsPage(description()))
  // People type the slash; the reference names nothing relative to itself.
  const again = shown("/docs/", "Show the API reference as a page", () => docsResponse(page()))
  const errors = shown("/docs/errors/{name}", "What an error code means", ({ params }) =>
    errorPage(params.name),
  )
  return [...routes, shown("/", "What this server is", startPage), again, errors]
}

const JSON_HEADERS = { "content-type": "application/json;charset=utf-8" }

/** Made at the first call, and kept for later calls. */
function once<Value>(make: () => Value): () => Value {
  let made: { value: Value } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

/** A page that only shows something. */
const shown = <const Path extends string>(
  path: Path,
  summary: string,
  handle: (call: CallAt<Path>) => Response,
): AnyRoute => ({
  method: "GET",
  path,
  callers: ["none"],
  scope: "-",
  status: [200],
  summary,
  page: refusalPage,
  produces: "text/html",
  handle,
})

type CallAt<Path extends string, Fields = unknown> = Call<Fields, unknown, PathParams<Path>>

interface PageParts
  extends device.DevicePageParts,
    invitation.InvitationPageParts,
    password.PasswordPageParts {}

/** What people open in a browser, from a mail or because a program told them to. */
export const pageRoutes = (parts: PageParts): AnyRoute[] => [
  ...form("/device", {
    credentials: ["user_code"],
    summary: "Sign in a program that shows a code",
    show: async ({ request }) => {
      const user_code = new URL(request.url).searchParams.get("user_code") ?? ""
      return device.askForCode({ user_code })
    },
    answer: ({ body, ip }: CallAt<"/device", device.DeviceForm>) =>
      device.answerForm(parts, body, ip),
  }),
  ...form("/invitation/{token}", {
    credentials: ["token"],
    summary: "Accept an invitation",
    show: ({ params }) => invitation.showInvitation(parts, params.token),
    answer: ({ params, body, ip }: WithToken<invitation.InvitationForm>) =>
      invitation.acceptForm(parts, params.token, body, ip),
  }),
  ...form("/password-reset/{token}", {
    credentials: ["token"],
    summary: "Choose a new password",
    show: ({ params }) => password.showReset(parts, params.token),
    answer: ({ params, body, ip }: WithToken<password.PasswordForm>) =>
      password.resetForm(parts, params.token, body, ip),
  }),
]

type WithToken<Fields> = Call<Fields, unknown, { token: string }>

interface FormPage<Path extends string> {
  credentials: readonly string[]
  summary: string
  show: (call: CallAt<Path>) => Promise<Response>
  answer: (call: CallAt<Path, never>) => Promise<Response>
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
    limit: LIMIT_BYTES,
    page: refusalPage,
    produces: "text/html",
  }
  return [
    { ...open, method: "GET", handle: show },
    { ...open, method: "POST", handle: answer },
  ]
}
