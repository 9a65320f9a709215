export interface StepDialogProps {
  onClose: () => void
  /** Its step may be done now. */
  onDone: () => unknown
}
