import { Type as t } from "@sinclair/typebox"
import { invalid } from "../core/errors"
import { nameText } from "../http/field-schemas"
import { type AnyRoute, type Call, consoleRow, projectRow, route } from "../http/route"
import { messageRows } from "../messages/pipeline"
import type { Store, Tx } from "../store/store"
import { type AccountRow, toResponse } from "../tenancy/accounts"
import { Account } from "../tenancy/schemas"
import { freeze, unfreeze } from "./evaluate"
import { release } from "./gate"
import { report } from "./reputation-report"
import { Released, Reputation } from "./schemas"

const OWN = "/v1/accounts/me/reputation"
const ONE = "/v1/admin/accounts/{account_id}"

const MOST_TAG_CHARACTERS = 100
const MOST_REASON_CHARACTERS = 200

const Release = t.Object({
  tag: t.Optional(nameText(MOST_TAG_CHARACTERS)),
  template_id: t.Optional(t.String({ format: "uuid" })),
})

const Reason = t.Object({ reason: nameText(MOST_REASON_CHARACTERS) })

export const reputationRoutes = ({ store }: { store: Store }): AnyRoute[] => [
  route({
    ...projectRow("GET", OWN, "usage:read"),
    summary: "Show how the account may send, its bounce and complaint rates, and a forecast",
    description:
      "The rates are those of all projects together. Domains, tags, templates and held mail are those of the project of an API key. People see those of all projects, or of the project that they name.",
    response: Reputation,
    handle: async ({ caller }) => ({
      data: await report(store.read, messageRows, {
        account_id: caller.account_id,
        project_id: caller.project_id || undefined,
      }),
    }),
  }),
  route({
    ...projectRow("POST", `${OWN}/release`, "email:send"),
    summary: "Release a tag or template that complaints hold",
    description:
      "Its waiting messages are queued again. Belfry counts its complaints anew from now on. 404 means that it is not held.",
    body: Release,
    example: { tag: "newsletter" },
    response: Released,
    handle: (call) => releaseOne(store, call),
  }),
  ...operatorRoutes(store),
]

async function releaseOne(store: Store, call: Call<{ tag?: string; template_id?: string }>) {
  const { caller, project_id, body } = call
  const { tag, template_id } = body
  if ((tag === undefined) === (template_id === undefined)) {
    throw invalid("tag", "invalid", "Give either `tag` or `template_id`.")
  }
  const dimension = tag === undefined ? ("template" as const) : ("tag" as const)
  const one = {
    account_id: caller.account_id,
    project_id,
    dimension,
    name: tag ?? template_id ?? "",
  }
  return { data: { released: await release(store, messageRows, one, caller) } }
}

function operatorRoutes(store: Store): AnyRoute[] {
  const by = <const Path extends string>(path: Path) => ({
    ...consoleRow("POST", path, "role:operator"),
    body: Reason,
    response: Account,
    errors: ["conflict"] as const,
  })
  return [
    route({
      ...by(`${ONE}/freeze`),
      summary: "Stop all sending of an account",
      description:
        "Only for operators. Every send of the account is refused with 403 `account_frozen`.",
      example: { reason: "Phishing, see case 1042" },
      handle: ({ params, body, caller }) =>
        answered(store, (tx) => freeze(tx, params.account_id, body.reason, caller)),
    }),
    route({
      ...by(`${ONE}/unfreeze`),
      summary: "Let a frozen account send again",
      description: "Only for operators. Belfry counts its bounces and complaints anew from now on.",
      example: { reason: "The list was cleaned" },
      handle: ({ params, body, caller }) =>
        answered(store, (tx) => unfreeze(tx, params.account_id, body.reason, caller)),
    }),
  ]
}

async function answered(store: Store, change: (tx: Tx) => Promise<AccountRow>) {
  return { data: await toResponse(store.read, await store.tx(change)) }
}
