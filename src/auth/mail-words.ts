import type { MailType } from "./environment-settings"

interface TypeWords {
  subject: string
  /** The heading, where it is not the subject. */
  title?: string
  text: string
  button?: string
}

const EN = {
  direction: "ltr" as "ltr" | "rtl",
  link_note: "The link works once, for {{expires_in}}.",
  code_note: "The code works once, for {{expires_in}}.",
  or_code: "Or enter this code:",
  copy: "If the button does not work, copy this address into your browser:",
  ignore: "If you did not ask for this, ignore this email.",
  alarm: "If this was not you, change your password at once.",
  device: "Device",
  ip: "IP address",
  time: "Time",
  help: "Help",
  types: {
    verify_email: {
      subject: "Confirm your email address",
      text: "Confirm that this is your address, so that you can use it at {{app_name}}.",
      button: "Confirm address",
    },
    magic_link: {
      subject: "Sign in to {{app_name}}",
      text: "With this button you sign in. You need no password.",
      button: "Sign in",
    },
    email_otp: {
      subject: "{{code}} is your code for {{app_name}}",
      title: "Your code for {{app_name}}",
      text: "Enter this code to continue. Do not tell it to anybody.",
    },
    password_reset: {
      subject: "Choose a new password for {{app_name}}",
      text: "Somebody asked for a new password of your account. With this button you choose it.",
      button: "Choose a new password",
    },
    password_changed: {
      subject: "Your password for {{app_name}} was changed",
      text: "The password of your account was changed.",
    },
    mfa_code: {
      subject: "{{code}} is your second code for {{app_name}}",
      title: "Your second code for {{app_name}}",
      text: "Enter this code to complete your sign-in. Do not tell it to anybody.",
    },
    invitation: {
      subject: "Your invitation to {{app_name}}",
      text: "You are invited to {{app_name}}. With this button you create your account.",
      button: "Accept the invitation",
    },
    organization_invitation: {
      subject: "Your invitation to {{default organization app_name}}",
      text: "You are invited to {{default organization app_name}} at {{app_name}}.",
      button: "Accept the invitation",
    },
    email_changed: {
      subject: "A new email address for your account at {{app_name}}",
      text: "The email address of your account is being changed. The new one gets a code first.",
    },
    new_device: {
      subject: "New sign-in to {{app_name}}",
      text: "Somebody signed in to your account from a device or network that is new.",
    },
  } as Record<MailType, TypeWords>,
}

/** The texts of the default mails in one language; Handlebars. */
export type MailWords = typeof EN

const DE: MailWords = {
  direction: "ltr",
  link_note: "Der Link gilt einmal, {{expires_in}} lang.",
  code_note: "Der Code gilt einmal, {{expires_in}} lang.",
  or_code: "Oder geben Sie diesen Code ein:",
  copy: "Wenn der Knopf nicht funktioniert, kopieren Sie diese Adresse in Ihren Browser:",
  ignore: "Wenn Sie das nicht angefordert haben, ignorieren Sie diese E-Mail.",
  alarm: "Wenn Sie das nicht waren, ändern Sie sofort Ihr Passwort.",
  device: "Gerät",
  ip: "IP-Adresse",
  time: "Zeit",
  help: "Hilfe",
  types: {
    verify_email: {
      subject: "Bestätigen Sie Ihre E-Mail-Adresse",
      text: "Bestätigen Sie, dass diese Adresse Ihnen gehört, damit Sie sie bei {{app_name}} verwenden können.",
      button: "Adresse bestätigen",
    },
    magic_link: {
      subject: "Bei {{app_name}} anmelden",
      text: "Mit diesem Knopf melden Sie sich an. Sie brauchen kein Passwort.",
      button: "Anmelden",
    },
    email_otp: {
      subject: "{{code}} ist Ihr Code für {{app_name}}",
      title: "Ihr Code für {{app_name}}",
      text: "Geben Sie diesen Code ein. Sagen Sie ihn niemandem.",
    },
    password_reset: {
      subject: "Neues Passwort für {{app_name}} wählen",
      text: "Jemand hat ein neues Passwort für Ihr Konto angefordert. Mit diesem Knopf wählen Sie es.",
      button: "Neues Passwort wählen",
    },
    password_changed: {
      subject: "Ihr Passwort für {{app_name}} wurde geändert",
      text: "Das Passwort Ihres Kontos wurde geändert.",
    },
    mfa_code: {
      subject: "{{code}} ist Ihr zweiter Code für {{app_name}}",
      title: "Ihr zweiter Code für {{app_name}}",
      text: "Geben Sie diesen Code ein, um die Anmeldung abzuschließen. Sagen Sie ihn niemandem.",
    },
    invitation: {
      subject: "Ihre Einladung zu {{app_name}}",
      text: "Sie sind zu {{app_name}} eingeladen. Mit diesem Knopf legen Sie Ihr Konto an.",
      button: "Einladung annehmen",
    },
    organization_invitation: {
      subject: "Ihre Einladung zu {{default organization app_name}}",
      text: "Sie sind zu {{default organization app_name}} bei {{app_name}} eingeladen.",
      button: "Einladung annehmen",
    },
    email_changed: {
      subject: "Eine neue E-Mail-Adresse für Ihr Konto bei {{app_name}}",
      text: "Die E-Mail-Adresse Ihres Kontos wird geändert. Die neue erhält zuerst einen Code.",
    },
    new_device: {
      subject: "Neue Anmeldung bei {{app_name}}",
      text: "Jemand hat sich bei Ihrem Konto von einem neuen Gerät oder Netz aus angemeldet.",
    },
  },
}

const FR: MailWords = {
  direction: "ltr",
  link_note: "Le lien ne sert qu’une fois, pendant {{expires_in}}.",
  code_note: "Le code ne sert qu’une fois, pendant {{expires_in}}.",
  or_code: "Ou saisissez ce code\u00a0:",
  copy: "Si le bouton ne fonctionne pas, copiez cette adresse dans votre navigateur\u00a0:",
  ignore: "Si vous n’avez rien demandé, ignorez cet e-mail.",
  alarm: "Si ce n’était pas vous, changez tout de suite votre mot de passe.",
  device: "Appareil",
  ip: "Adresse IP",
  time: "Heure",
  help: "Aide",
  types: {
    verify_email: {
      subject: "Confirmez votre adresse e-mail",
      text: "Confirmez que cette adresse est la vôtre, pour l’utiliser sur {{app_name}}.",
      button: "Confirmer l’adresse",
    },
    magic_link: {
      subject: "Connexion à {{app_name}}",
      text: "Ce bouton vous connecte. Il ne faut pas de mot de passe.",
      button: "Se connecter",
    },
    email_otp: {
      subject: "{{code}} est votre code pour {{app_name}}",
      title: "Votre code pour {{app_name}}",
      text: "Saisissez ce code pour continuer. Ne le donnez à personne.",
    },
    password_reset: {
      subject: "Choisissez un nouveau mot de passe pour {{app_name}}",
      text: "Quelqu’un a demandé un nouveau mot de passe pour votre compte. Ce bouton vous permet de le choisir.",
      button: "Choisir un nouveau mot de passe",
    },
    password_changed: {
      subject: "Votre mot de passe pour {{app_name}} a été modifié",
      text: "Le mot de passe de votre compte a été modifié.",
    },
    mfa_code: {
      subject: "{{code}} est votre second code pour {{app_name}}",
      title: "Votre second code pour {{app_name}}",
      text: "Saisissez ce code pour terminer la connexion. Ne le donnez à personne.",
    },
    invitation: {
      subject: "Votre invitation à {{app_name}}",
      text: "Vous êtes invité à rejoindre {{app_name}}. Ce bouton vous permet de créer votre compte.",
      button: "Accepter l’invitation",
    },
    organization_invitation: {
      subject: "Votre invitation à {{default organization app_name}}",
      text: "Vous êtes invité à rejoindre {{default organization app_name}} sur {{app_name}}.",
      button: "Accepter l’invitation",
    },
    email_changed: {
      subject: "Une nouvelle adresse e-mail pour votre compte {{app_name}}",
      text: "L’adresse e-mail de votre compte est en cours de modification. La nouvelle reçoit d’abord un code.",
    },
    new_device: {
      subject: "Nouvelle connexion à {{app_name}}",
      text: "Quelqu’un s’est connecté à votre compte depuis un nouvel appareil ou réseau.",
    },
  },
}

const ES: MailWords = {
  direction: "ltr",
  link_note: "El enlace sirve una sola vez, durante {{expires_in}}.",
  code_note: "El código sirve una sola vez, durante {{expires_in}}.",
  or_code: "O introduzca este código:",
  copy: "Si el botón no funciona, copie esta dirección en su navegador:",
  ignore: "Si no ha pedido esto, ignore este correo.",
  alarm: "Si no ha sido usted, cambie su contraseña de inmediato.",
  device: "Dispositivo",
  ip: "Dirección IP",
  time: "Hora",
  help: "Ayuda",
  types: {
    verify_email: {
      subject: "Confirme su dirección de correo",
      text: "Confirme que esta dirección es suya, para usarla en {{app_name}}.",
      button: "Confirmar la dirección",
    },
    magic_link: {
      subject: "Iniciar sesión en {{app_name}}",
      text: "Con este botón inicia sesión. No necesita contraseña.",
      button: "Iniciar sesión",
    },
    email_otp: {
      subject: "{{code}} es su código para {{app_name}}",
      title: "Su código para {{app_name}}",
      text: "Introduzca este código para continuar. No se lo diga a nadie.",
    },
    password_reset: {
      subject: "Elija una nueva contraseña para {{app_name}}",
      text: "Alguien ha pedido una nueva contraseña para su cuenta. Con este botón la elige.",
      button: "Elegir una nueva contraseña",
    },
    password_changed: {
      subject: "Su contraseña de {{app_name}} ha cambiado",
      text: "La contraseña de su cuenta ha cambiado.",
    },
    mfa_code: {
      subject: "{{code}} es su segundo código para {{app_name}}",
      title: "Su segundo código para {{app_name}}",
      text: "Introduzca este código para completar el inicio de sesión. No se lo diga a nadie.",
    },
    invitation: {
      subject: "Su invitación a {{app_name}}",
      text: "Le han invitado a {{app_name}}. Con este botón crea su cuenta.",
      button: "Aceptar la invitación",
    },
    organization_invitation: {
      subject: "Su invitación a {{default organization app_name}}",
      text: "Le han invitado a {{default organization app_name}} en {{app_name}}.",
      button: "Aceptar la invitación",
    },
    email_changed: {
      subject: "Una nueva dirección de correo para su cuenta de {{app_name}}",
      text: "La dirección de correo de su cuenta va a cambiar. La nueva recibe primero un código.",
    },
    new_device: {
      subject: "Nuevo inicio de sesión en {{app_name}}",
      text: "Alguien ha iniciado sesión en su cuenta desde un dispositivo o una red nuevos.",
    },
  },
}

const AR: MailWords = {
  direction: "rtl",
  link_note: "يعمل الرابط مرة واحدة، لمدة {{expires_in}}.",
  code_note: "يعمل الرمز مرة واحدة، لمدة {{expires_in}}.",
  or_code: "أو أدخل هذا الرمز:",
  copy: "إذا لم يعمل الزر، فانسخ هذا العنوان إلى متصفحك:",
  ignore: "إذا لم تطلب ذلك، فتجاهل هذه الرسالة.",
  alarm: "إذا لم تكن أنت من فعل ذلك، فغيّر كلمة المرور فورًا.",
  device: "الجهاز",
  ip: "عنوان IP",
  time: "الوقت",
  help: "مساعدة",
  types: {
    verify_email: {
      subject: "أكّد عنوان بريدك الإلكتروني",
      text: "أكّد أن هذا العنوان لك، كي تستخدمه في {{app_name}}.",
      button: "تأكيد العنوان",
    },
    magic_link: {
      subject: "تسجيل الدخول إلى {{app_name}}",
      text: "بهذا الزر تسجّل الدخول. لا تحتاج إلى كلمة مرور.",
      button: "تسجيل الدخول",
    },
    email_otp: {
      subject: "{{code}} هو رمزك في {{app_name}}",
      title: "رمزك في {{app_name}}",
      text: "أدخل هذا الرمز للمتابعة. لا تخبر به أحدًا.",
    },
    password_reset: {
      subject: "اختر كلمة مرور جديدة في {{app_name}}",
      text: "طلب أحدهم كلمة مرور جديدة لحسابك. بهذا الزر تختارها.",
      button: "اختيار كلمة مرور جديدة",
    },
    password_changed: {
      subject: "تم تغيير كلمة مرورك في {{app_name}}",
      text: "تم تغيير كلمة مرور حسابك.",
    },
    mfa_code: {
      subject: "{{code}} هو رمزك الثاني في {{app_name}}",
      title: "رمزك الثاني في {{app_name}}",
      text: "أدخل هذا الرمز لإكمال تسجيل الدخول. لا تخبر به أحدًا.",
    },
    invitation: {
      subject: "دعوتك إلى {{app_name}}",
      text: "أنت مدعو إلى {{app_name}}. بهذا الزر تنشئ حسابك.",
      button: "قبول الدعوة",
    },
    organization_invitation: {
      subject: "دعوتك إلى {{default organization app_name}}",
      text: "أنت مدعو إلى {{default organization app_name}} في {{app_name}}.",
      button: "قبول الدعوة",
    },
    email_changed: {
      subject: "عنوان بريد إلكتروني جديد لحسابك في {{app_name}}",
      text: "يجري تغيير عنوان البريد الإلكتروني لحسابك. يتلقى العنوان الجديد رمزًا أولًا.",
    },
    new_device: {
      subject: "تسجيل دخول جديد إلى {{app_name}}",
      text: "سجّل أحدهم الدخول إلى حسابك من جهاز جديد أو شبكة جديدة.",
    },
  },
}

export const MAIL_WORDS = { en: EN, de: DE, fr: FR, es: ES, ar: AR }

export type MailLanguage = keyof typeof MAIL_WORDS
