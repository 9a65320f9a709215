import { curlOf } from "../curl"
import { CodeBlock } from "../parts/code-block"
import { Dialog } from "../parts/dialog"
import { mailCommands } from "./mail-commands"
import type { OpenMail } from "./mail-records"

interface CommandsDialogProps {
  mail: OpenMail
  onClose: () => void
}

/** All that the page does with a mail, for a terminal and for a program. */
export const CommandsDialog = ({ mail, onClose }: CommandsDialogProps) => (
  <Dialog title="From a terminal or a program" onClose={onClose} is_wide>
    {mailCommands(mail).map(({ title, belfry, request }) => (
      <section key={title}>
        <h3>{title}</h3>
        <CodeBlock label={`belfry: ${title}`} text={belfry} />
        <CodeBlock label={`curl: ${title}`} text={curlOf(request, location.origin)} />
      </section>
    ))}
  </Dialog>
)
