package pred
import ("testing";"fmt")
func TestTmp(t *testing.T){
 for _,s:=range []string{"price > 3.5 and name like 'a%' or not (x in (1,2,null) and \"a b\".c.date is not null)","3<x","x not between date '2020-01-01' and timestamp '2020-01-01 03:04:05.5+02:00'","flag","not flag","x > and","x = y","x = 'abc","x in (1 2)","","a b","x = 3abc","x=0x0g","x = date '2020-13-01'","x\n = \n  @","x like 'a\\'","x like 'a!%' escape '!!'","true","null = x","1=1", "x=99999999999999999999999999999999999999999","x=1e999", "x = 18446744073709551616", "date = date '-0044-03-15'"} {
  e,err:=Parse(s)
  fmt.Println(s,"=>",e,err)
 }
}
