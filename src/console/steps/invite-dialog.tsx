import { useState } from "preact/hooks"
import { requestOf } from "../../client/client"
import { quoted } from "../curl"
import { project } from "../page-session"
import { ActionDialog } from "../parts/action-dialog"
import { Choice, Field } from "../parts/field"
import { projects } from "../session-start"
import { call } from "../transport"
import { useObservable } from "../use-observable"
import type { StepDialogProps } from "./step-dialogs"

const ACCOUNT_ROLES = [
  { value: "member", text: "Member: works in this project" },
  { value: "admin", text: "Admin: may do everything but own the account" },
  { value: "billing_admin", text: "Billing admin: sees plan and usage" },
] as const

const PROJECT_ROLES = [
  { value: "developer", text: "Developer: sends, and changes the set-up" },
  { value: "viewer", text: "Viewer: reads" },
  { value: "admin", text: "Admin: may do everything in it" },
] as const

type AccountRole = (typeof ACCOUNT_ROLES)[number]["value"]
type ProjectRole = (typeof PROJECT_ROLES)[number]["value"]

/** Sends a link by which somebody joins the account. */
export function InviteDialog({ onClose, onDone }: StepDialogProps) {
  const [email, setEmail] = useState("")
  const [role, setRole] = useState<AccountRole>("member")
  const [project_role, setProjectRole] = useState<ProjectRole>("developer")
  const chosen = useObservable(project)
  const name = useObservable(projects)?.find(({ id }) => id === chosen?.id)?.name
  const is_member = role === "member" && chosen !== null
  const granted = is_member ? [{ project_id: chosen.id, role: project_role }] : []
  const input = { body: { email: email.trim(), role, projects: granted } }
  const grants = granted.map((one) => ` --grant ${one.project_id}=${one.role}`).join("")
  return (
    <ActionDialog
      title="Invite somebody"
      action="Invite"
      said={`the invitation to ${input.body.email} is on its way`}
      run={() => call("POST /v1/accounts/me/members/invite", input)}
      belfry={`belfry members invite ${quoted(input.body.email || "ann@example.com")} --role ${role}${grants}`}
      request={requestOf("POST /v1/accounts/me/members/invite", input)}
      onClose={onClose}
      onDone={onDone}
    >
      <p class="soft">A mail with a link goes to this person. The link works for 7 days.</p>
      <Field label="Email" value={email} onInput={setEmail} required is_code />
      <Choice label="Role" value={role} onChoose={setRole} options={ACCOUNT_ROLES} />
      {is_member && (
        <Choice
          label={`Role in ${name ?? "this project"}`}
          value={project_role}
          onChoose={setProjectRole}
          options={PROJECT_ROLES}
        />
      )}
    </ActionDialog>
  )
}
