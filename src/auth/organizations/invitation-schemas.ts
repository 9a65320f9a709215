import { Type as t } from "@sinclair/typebox"
import { id, text, time, word } from "../../lib/record-fields"
import { redirectField, tokenField, wantedEmail } from "../sign-in-fields"
import { MemberPatch } from "./organization-schemas"
import { INVITATION_STATUSES } from "./taken-invitations"

/** As the contract shows it (51, section 3). */
export const OrgInvitation = t.Object(
  {
    id: id(),
    organization_id: id(),
    email: text("ann@example.com"),
    role: text("member"),
    status: word(INVITATION_STATUSES),
    expires_at: time("Seven days after it was mailed."),
    created_at: time(),
  },
  { title: "OrgInvitation" },
)

export const NewOrgInvitation = t.Object({
  email: wantedEmail(),
  role: MemberPatch.properties.role,
  redirect_url: redirectField(),
})

export const AcceptedInvitation = t.Object({ token: tokenField() })
