import { builder } from './builder.ts'
import { SERVICE } from './context.ts'

type CallerShape = {
  subject: string
  email: string | null
  project: string | null
  permissions: ReadonlySet<string>
}

export const Caller = builder.objectRef<CallerShape>('Caller')

Caller.implement({
  description: 'Whoever sent this request, as the API sees it.',
  fields: (t) => ({
    subject: t.exposeString('subject', {
      description: 'The identity that the token was issued for.',
    }),
    email: t.exposeString('email', {
      nullable: true,
      description: 'Its mail address, where the token tells one.',
    }),
    projectName: t.exposeString('project', {
      nullable: true,
      description:
        "The project of this request, taken from its path; null at the operators' path, which is about all.",
    }),
    permissions: t.stringList({
      description: `What the caller may do in this project, e.g. \`${SERVICE}/loadbalancers.create\`. In alphabetical order.`,
      resolve: ({ permissions }) => [...permissions].map((id) => `${SERVICE}/${id}`).sort(),
    }),
  }),
})
