#!/bin/bash
# A SLURM cluster of this one machine, for tests/host/test_slurm.py: as root, after apt-get install slurm-wlm munge.
# Everything is in the folder that is named (default /tmp/fedcohort-slurm); say `export SLURM_CONF=<folder>/slurm.conf`.
# Partition "spare" is preempted by partition "urgent", after a grace of ten seconds, and requeued.
set -e
folder=${1:-/tmp/fedcohort-slurm}
host=$(hostname -s)
mkdir -p "$folder"/{state,spool} /run/munge
chown munge: /run/munge /etc/munge/munge.key
cat > "$folder/slurm.conf" <<CONF
ClusterName=one
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=16817
SlurmdPort=16818
AuthType=auth/munge
AuthInfo=cred_expire=10
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
JobRequeue=1
SchedulerParameters=batch_sched_delay=0,sched_interval=2
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
NodeName=$host NodeAddr=127.0.0.1 CPUs=8 RealMemory=20000 State=UNKNOWN
PartitionName=spare Nodes=$host Default=YES PriorityTier=1 GraceTime=10 State=UP
PartitionName=urgent Nodes=$host PriorityTier=9 State=UP
CONF
pgrep -x munged > /dev/null || setpriv --reuid=munge --regid=munge --clear-groups munged
export SLURM_CONF=$folder/slurm.conf
slurmctld
slurmd
for _ in $(seq 30); do
    sinfo --noheader --format=%t 2> /dev/null | grep -qE '^(idle|mix|alloc)' && break
    sleep 1
done
sinfo
