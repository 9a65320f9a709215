import { Type as t } from "@sinclair/typebox"
import { type AnyRoute, route } from "../http/route"
import { flag, text, word } from "../lib/record-fields"
import { authRow } from "./auth-rows"
import { defaultTemplate } from "./default-templates"
import { MAIL_TYPES } from "./environment-settings"
import { MAIL_VARIABLES } from "./mail-variables"

const AuthEmailTemplate = t.Object(
  {
    type: word(MAIL_TYPES),
    subject: text("{{code}} is your code for {{app_name}}"),
    html: text("<h1>Your code for {{app_name}}</h1><p>{{code}}</p>"),
    text: text("{{code}}"),
    variables: t.Array(
      t.Object({
        key: text("code"),
        required: flag(true, "A template of the project must use it, too."),
      }),
    ),
  },
  { title: "AuthEmailTemplate" },
)

export const emailTemplateRoutes = (): AnyRoute[] => [
  route({
    ...authRow("GET", "/v1/auth/email-templates", ["key", "console"], "auth:read"),
    summary: "List the default texts of the emails to end users",
    description:
      "There are ten, in the language of the project. An environment may name a template of the project in place of each. Such a template has the same variables.",
    response: t.Array(AuthEmailTemplate),
    handle: ({ caller }) => ({
      data: MAIL_TYPES.map((type) => ({
        type,
        ...defaultTemplate(type, caller.project_settings.locale),
        variables: MAIL_VARIABLES[type],
      })),
    }),
  }),
]
