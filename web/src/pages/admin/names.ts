import { useQuery } from '@tanstack/react-query'
import { type Caller, client, data } from '../../api/client'
import { may } from './rights'

export const useProjects = (enabled = true) =>
  useQuery({ queryKey: ['projects'], enabled, queryFn: async () => (await data(client.GET('/projects'))).items })

export const useUsers = (enabled: boolean) =>
  useQuery({ queryKey: ['users'], enabled, queryFn: async () => (await data(client.GET('/users'))).items })

/** The name of a user or a project where the caller may know it, otherwise its id. */
export function useNames(who: Caller): (id: string) => string {
  const users = useUsers(may(who, 'server:manage')).data
  const projects = useProjects().data
  return (id) => users?.find((u) => u.id === id)?.name ?? projects?.find((p) => p.id === id)?.name ?? id
}
